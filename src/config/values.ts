/** How variables of the environment are read, and the kinds of their values, with the messages of faults. */

import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { z } from 'zod'
import { isDecodable } from '../runtime/percent.ts'

export const port = (value: number) => integer(0, 65_535).default(value)
export const textThat = (isRight: (text: string) => boolean, wanted: string) => z.string().refine(isRight, wanted)
export const url = (protocols: string[], example: string) => {
  const isRight = (text: string) => URL.canParse(text) && protocols.includes(new URL(text).protocol)
  return textThat(isRight, `must be a URL such as ${example}`)
}
export const webUrl = (example: string) =>
  url(['http:', 'https:'], example)
    .refine(
      (text) => !URL.canParse(text) || (new URL(text).search === '' && new URL(text).hash === ''),
      'must have no query and no fragment',
    )
    .transform((text) => text.replace(/\/+$/, ''))

export const UNREADABLE_CREDENTIALS =
  'has a % in the user or the password that does not begin an escape: write it as %25'
export function hasReadableCredentials(text: string): boolean {
  const { username, password } = new URL(text)
  return isDecodable(username) && isDecodable(password)
}

export const uuid = (wanted: string) => z.guid(wanted).transform((text) => text.toLowerCase())

export function integer(min: number, max: number) {
  const isRight = (text: string) => /^\d{1,15}$/.test(text) && Number(text) >= min && Number(text) <= max
  return textThat(isRight, `must be an integer from ${min} to ${max}`).transform(Number)
}

/** Entries separated by commas. Empty ones are ignored. */
export const list = () =>
  z.string().transform((text): readonly string[] =>
    text
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ''),
  )

/** Like `list`. A fault names the position of the first wrong entry, not the entry itself: it may be a secret. */
export function listOf(isRight: (entry: string) => boolean, most: number, wanted: string) {
  return list().superRefine((entries, context) => {
    const wrong = entries.findIndex((entry) => !isRight(entry))
    if (wrong >= 0) context.addIssue(`${wanted}: entry ${wrong + 1} is not valid`)
    else if (entries.length > most) context.addIssue(`must have at most ${most} entries, and has ${entries.length}`)
  })
}

/** A fault as `find` words it. */
export function withFault<Value>(find: (value: Value) => string | null) {
  return (value: Value, context: z.RefinementCtx): void => {
    const fault = find(value)
    if (fault !== null) context.addIssue(fault)
  }
}

export const textWithout = (find: (text: string) => string | null) => z.string().superRefine(withFault(find))

/** Addresses and CIDRs. */
export function blocks() {
  return list().superRefine((entries, context) => {
    const wrong = entries.findIndex((entry) => !isBlock(entry))
    if (wrong < 0) return
    const entry = entries[wrong]!
    // Text that does not look like an address may be a URL with a password in the wrong variable.
    const name = /^[\w.:/[\]*-]{1,60}$/.test(entry) ? `"${entry}"` : `entry ${wrong + 1}`
    context.addIssue(
      `must be addresses or CIDRs separated by commas, such as 10.1.2.3,10.0.0.0/8,fd00::/8: ${name} is not valid`,
    )
  })
}

/** An address, or a CIDR: an address and how many of its first bits count. */
function isBlock(text: string): boolean {
  const [, address = '', bits] = /^([\d.a-f:]+)(?:\/(0|[1-9]\d{0,2}))?$/i.exec(text) ?? []
  const family = isIP(address)
  return family !== 0 && Number(bits ?? 0) <= (family === 4 ? 32 : 128)
}

export function oneOf<const T extends string>(...values: T[]) {
  return z.enum(values, { error: () => `must be one of ${values.join(', ')}` })
}

/** A switch that is on by default. */
export const isOn = () =>
  oneOf('on', 'off')
    .default('on')
    .transform((value) => value === 'on')

/** Undefined when it is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The value of `NAME`, or the contents of the file `NAME_FILE` (a mounted secret) without the last line break. */
export function readVariable(environment: NodeJS.ProcessEnv, name: string, faults: string[]): string | undefined {
  // Kubernetes and Compose pass empty variables, which count as not set.
  const value = environment[name] || undefined
  const file = environment[`${name}_FILE`] || undefined
  if (file === undefined) return value
  if (value !== undefined) faults.push(`${name} and ${name}_FILE are both set: keep one of them`)
  try {
    return readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    faults.push(`${name}_FILE names a file that cannot be read: ${(error as Error).message}`)
    return undefined
  }
}
