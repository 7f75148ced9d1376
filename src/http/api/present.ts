/**
 * Responses as their schemas declare them. Handlers return what the verbs return: the schema says which fields are
 * shown, under which names, and which numbers are times.
 */

import { z } from 'zod'
import type { Instant } from '../../domain/check.ts'
import { type CamelCase, toCamelCase } from '../../domain/field-names.ts'
import { toIso } from '../../domain/instant.ts'

/** What a handler returns for a response: `periodSeconds` is shown as `period_seconds`, and a time is a number. */
export type Shown<Output> = Output extends string & z.core.$brand<'instant'>
  ? Instant
  : Output extends readonly (infer Entry)[]
    ? readonly Shown<Entry>[]
    : Output extends object
      ? string extends keyof Output
        ? Output
        : { readonly [Name in keyof Output as CamelCase<Name>]: Shown<Output[Name]> }
      : Output

type Present = (value: never) => unknown

const presents = new WeakMap<z.ZodType, Present>()

/** Fields that the schema does not declare are dropped. */
export function present<Schema extends z.ZodType>(schema: Schema, value: Shown<z.output<Schema>>): unknown {
  const known = presents.get(schema) ?? compile(schema)
  presents.set(schema, known)
  return known(value as never)
}

/** For the kinds of zod in which our responses nest. */
function compile(schema: z.ZodType): Present {
  if (schema instanceof z.ZodOptional) return compile(schema.unwrap() as z.ZodType)
  if (schema instanceof z.ZodNullable) {
    const inner = compile(schema.unwrap() as z.ZodType)
    return (value) => (value === null ? null : inner(value))
  }
  if (schema instanceof z.ZodArray) {
    const inner = compile(schema.element as z.ZodType)
    return (values: readonly never[]) => values.map((value) => inner(value))
  }
  if (schema instanceof z.ZodDiscriminatedUnion) {
    const { discriminator } = schema.def
    const members = (schema.options as z.ZodObject[]).map(
      (member) => [(member.shape[discriminator] as z.ZodLiteral).value, compile(member)] as const,
    )
    const byValue = new Map<unknown, Present>(members)
    return (value) => byValue.get(value[discriminator])!(value)
  }
  if (schema instanceof z.ZodObject) return compileObject(schema)
  if (schema.meta()?.format === 'date-time') return (at: Instant | string) => (typeof at === 'number' ? toIso(at) : at)
  return (value) => value
}

function compileObject({ shape }: z.ZodObject): Present {
  const fields = Object.entries(shape).map(
    ([name, schema]) => [name, toCamelCase(name), compile(schema as z.ZodType)] as const,
  )
  return (value) => {
    const shown: Record<string, unknown> = {}
    for (const [name, field, inner] of fields) {
      // The config of a channel has the names of the API already.
      const given = value[field] === undefined ? value[name] : value[field]
      if (given !== undefined) shown[name] = inner(given)
    }
    return shown
  }
}

/** The fields of a request under the names of the verbs, without fields that are left out. */
export function inCamelCase<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields as CamelCase<Name>]: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(
    Object.entries(given(fields)).map(([name, value]) => [toCamelCase(name), value]),
  ) as ReturnType<typeof inCamelCase<Fields>>
}

/** Returns `fields` without those that are undefined: the verbs expect them to be absent. */
export function given<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Fields
}
