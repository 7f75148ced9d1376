/**
 * The building blocks of the schemas of our resources. A rule that needs more than bounds is written twice, side by
 * side: in CEL for the API server, and in TypeScript for the operator, so that a resource that was stored under an
 * older definition is checked by the same rules. test/cluster/crd*.test.ts run the same manifests through both.
 */

import { z } from 'zod'

export interface Rule<Value> {
  /** What must hold, in CEL. */
  readonly cel: string
  /** The same in TypeScript. Left out for a rule on a change: only the API server sees the old value. */
  readonly holds?: (value: Value) => boolean
  /** What would be right, in words that follow the path of the field. */
  readonly message: string
  /** The message says all: the operator writes no path before it. */
  readonly isSentence?: true
  /** The path of the fault, relative to the value that has the rule: `.timeZone`. Default: the value itself. */
  readonly fieldPath?: `.${string}`
  readonly reason: 'FieldValueInvalid' | 'FieldValueForbidden' | 'FieldValueRequired'
}

/** What the whole text must match: editors and generated clients read the pattern, people the message of the rule. */
interface Shape extends Rule<string> {
  readonly pattern: string
}

/** A rule that the whole text matches the pattern, which must mean the same in RE2 and in JavaScript. */
export function shaped(pattern: string, message: string): Shape {
  const whole = `^(${pattern})$`
  const shape = new RegExp(whole)
  const holds = (value: string) => shape.test(value)
  return { cel: `self.matches(r'${whole}')`, holds, message, reason: 'FieldValueInvalid', pattern: whole }
}

/** The schema with its rules. `meta` goes into the definition as it is: the description, the bounds. */
export function withRules<Schema extends z.ZodType>(
  schema: Schema,
  rules: readonly Rule<z.output<Schema>>[],
  meta: Readonly<Record<string, unknown>>,
): Schema {
  return schema.superRefine(checkRules(rules)).meta({ ...meta, ...describeRules(rules) })
}

function checkRules<Value>(rules: readonly Rule<Value>[]) {
  return (value: Value, context: z.RefinementCtx): void => {
    for (const { holds, message, fieldPath, isSentence } of rules)
      if (holds?.(value) === false)
        context.addIssue({
          code: 'custom',
          message,
          path: fieldPath?.slice(1).split('.') ?? [],
          params: { isSentence },
        })
  }
}

/**
 * What is wrong, with the path of its field before it, unless the message says all. `root`: the path of what was
 * checked.
 */
export function describeIssue(root: string, issue: z.core.$ZodIssue): string {
  const { path, message } = issue
  if (issue.code === 'custom' && issue.params?.isSentence === true) return message
  return `${[root, ...path.map(String)].join('.')} ${message}`
}

export function describeRules(rules: readonly Rule<never>[]): object {
  if (rules.length === 0) return {}
  return {
    'x-kubernetes-validations': rules.map(({ cel, message, fieldPath, reason }) => ({
      rule: cel,
      message,
      ...(fieldPath && { fieldPath }),
      reason,
    })),
  }
}

/** For texts of several lines. */
export const NO_CONTROLS: Rule<string> = {
  cel: String.raw`!self.matches(r'[^\P{Cc}\t\n\r]')`,
  holds: (value) => !/[^\P{Cc}\t\n\r]/u.test(value),
  message: 'must have no control characters other than line breaks and tabs',
  reason: 'FieldValueInvalid',
}

/** The shape of the names of most objects. */
export const SUBDOMAIN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*'

/** The value of a label, and a key after its prefix. */
const WORD = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'

export const LABEL_VALUE = shaped(
  `(${WORD})?`,
  'must be the value of a label: letters, digits, -, _ and ., beginning and ending with a letter or digit',
)
/** `must`: `must have keys such as` or `must be a key such as`. */
export const labelKey = (must: string) =>
  shaped(
    `(${SUBDOMAIN}/)?${WORD}`,
    `${must} team or example.com/team: up to 63 letters, digits, -, _ and ., after a prefix or without one`,
  )
const keyShape = labelKey('must have keys such as')
/** Of a map. */
export const LABEL_KEYS: Rule<Record<string, string>> = {
  ...keyShape,
  cel: `self.all(k, ${keyShape.cel.replace('self.', 'k.')})`,
  holds: (entries) => Object.keys(entries).every(keyShape.holds!),
}

interface TextOptions {
  readonly min?: number
  readonly max: number
  readonly description: string
  readonly rules?: readonly (Rule<string> | Shape)[]
}

/** Counts lengths in code points, as the API server does. */
export function text({ min = 0, max, description, rules = [] }: TextOptions): z.ZodString {
  const says = min === 0 ? `must have at most ${max} characters` : `must have ${min} to ${max} characters`
  const isFit = (value: string): boolean => {
    const { length } = Array.from(value)
    return length >= min && length <= max
  }
  const shape = rules.find((rule): rule is Shape => 'pattern' in rule)
  const meta = {
    description,
    ...(min === 0 ? {} : { minLength: min }),
    maxLength: max,
    ...(shape && { pattern: shape.pattern }),
  }
  return withRules(z.string('must be text').refine(isFit, { error: says, abort: true }), rules, meta)
}

interface IntegerOptions {
  readonly min: number
  readonly max: number
  readonly description: string
}

export function integer({ min, max, description }: IntegerOptions): z.ZodInt {
  const says = `must be an integer from ${min} to ${max}`
  return z.int(says).min(min, says).max(max, says).meta({ description, format: 'int32' })
}

export function oneOf<const Values extends readonly string[]>(values: Values, description: string) {
  return z.enum(values, `must be one of ${values.join(', ')}`).meta({ description })
}

interface SetOptions {
  readonly max: number
  /** What no item may be twice, such as `a tag`. */
  readonly of: string
  readonly description: string
}

/** A list in which each item occurs once. */
export function setOf<One extends z.ZodType<string | number>>(one: One, { max, of, description }: SetOptions) {
  return z
    .array(one, 'must be a list')
    .max(max, { error: `must have at most ${max} items`, abort: true })
    .superRefine((all: readonly unknown[], context) => {
      const repeated = all.findIndex((item, index) => all.indexOf(item) !== index)
      if (repeated !== -1) context.addIssue({ code: 'custom', message: `must not be ${of} twice`, path: [repeated] })
    })
    .meta({ description, 'x-kubernetes-list-type': 'set' })
}

interface EntriesOptions {
  readonly max: number
  readonly value: z.ZodString
  readonly description: string
  readonly rules: readonly Rule<Record<string, string>>[]
}

/** A map of text to text. */
export function entries({ max, value, description, rules }: EntriesOptions) {
  const says = { error: `must have at most ${max} entries`, abort: true }
  const map = z.record(z.string(), value).refine((entries) => Object.keys(entries).length <= max, says)
  return withRules(map, rules, { description, maxProperties: max })
}
