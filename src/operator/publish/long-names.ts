/**
 * Shorter names that are made from the name of a HeartbeatCheck, which may have 253 characters: programs make long
 * ones. What is cut gets a hash of the whole, so that two names stay two.
 */

import { createHash } from 'node:crypto'
import { LABEL_LENGTH, OBJECT_NAME_LENGTH } from '../names.ts'

const HASH_LENGTH = 10
const SUFFIX = '-heartbeat'

const hashOf = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, HASH_LENGTH)

/** Whether CHECK_LABEL holds less than the name, and CHECK_NAME_ANNOTATION all of it. */
export const isLongName = (name: string): boolean => name.length > LABEL_LENGTH

/** The value of CHECK_LABEL: the name of the HeartbeatCheck, or its beginning and a hash. */
export function labelValueOf(name: string): string {
  return isLongName(name) ? `${name.slice(0, LABEL_LENGTH - HASH_LENGTH - 1)}-${hashOf(name)}` : name
}

/** The Secret or ConfigMap of a resource that names none. */
export function targetNameOf(name: string): string {
  const whole = `${name}${SUFFIX}`
  if (whole.length <= OBJECT_NAME_LENGTH) return whole
  const end = `-${hashOf(name)}${SUFFIX}`
  // A dot or hyphen before the hyphen would be no name.
  return `${name.slice(0, OBJECT_NAME_LENGTH - end.length).replace(/[-.]+$/, '')}${end}`
}
