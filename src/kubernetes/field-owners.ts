/**
 * Owners of fields (metadata.managedFields), handed over from a manager of another name, as when a program changes the name under
 * which it writes. Fields of a manager that does not write any more would keep its name for ever, and a manager that applies an
 * object meets a conflict with it.
 */

import { isDeepStrictEqual } from 'node:util'
import type { FieldsOwner } from './objects.ts'

/** The names of the fields in `fieldsV1`; a leaf is empty. */
interface Fields {
  readonly [name: string]: Fields
}

export interface Handover {
  /** What it owns by updates; what it applied is left alone. */
  readonly from: string
  /** To the updates of this manager. */
  readonly to: string
  /** The version of the API that the new manager writes. */
  readonly apiVersion: string
  readonly subresource?: 'status'
  /** Only this field, as in `fieldsV1`; left out: all of them. */
  readonly path?: readonly string[]
}

/** Returns the owners after the handover, or the same array when there is nothing to hand over. */
export function handOver(owners: readonly FieldsOwner[], handover: Handover): readonly FieldsOwner[] {
  const { from, to, apiVersion, subresource, path = [] } = handover
  const isOf = (owner: FieldsOwner, manager: string) =>
    owner.manager === manager && owner.operation === 'Update' && owner.subresource === subresource
  const given = owners.filter((owner) => isOf(owner, from) && at(fieldsOf(owner), path) !== undefined)
  if (given.length === 0) return owners
  const others = owners.filter((owner) => !given.includes(owner))
  const left = given.flatMap((owner) => {
    const fields = without(fieldsOf(owner), path)
    return fields === null ? [] : [{ ...owner, fieldsV1: fields }]
  })
  const own = others.find((owner) => isOf(owner, to) && owner.apiVersion === apiVersion)
  const moved = given.map((owner) => only(fieldsOf(owner), path))
  const fieldsV1 = [...(own === undefined ? [] : [fieldsOf(own)]), ...moved].reduce(merge)
  const taken = { ...(own ?? given.at(-1)!), manager: to, apiVersion, fieldsV1 }
  return [...others.filter((owner) => owner !== own), ...left, taken]
}

const fieldsOf = ({ fieldsV1 = {} }: FieldsOwner) => fieldsV1 as Fields

function at(fields: Fields, path: readonly string[]): Fields | undefined {
  return path.reduce<Fields | undefined>((inner, name) => inner?.[name], fields)
}

function only(fields: Fields, [name, ...rest]: readonly string[]): Fields {
  return name === undefined ? fields : { [name]: only(fields[name]!, rest) }
}

/** Null when nothing is left. The field itself, `.`, goes with the last one in it. */
function without(fields: Fields, [name, ...rest]: readonly string[]): Fields | null {
  if (name === undefined) return null
  const { [name]: inner, ...others } = fields
  const left = inner === undefined ? null : without(inner, rest)
  if (left !== null) return { ...others, [name]: left }
  return Object.keys(others).every((other) => other === '.') ? null : others
}

function merge(a: Fields, b: Fields): Fields {
  if (isDeepStrictEqual(a, b)) return a
  const merged: Record<string, Fields> = { ...a }
  for (const [name, inner] of Object.entries(b)) merged[name] = merge(merged[name] ?? {}, inner)
  return merged
}
