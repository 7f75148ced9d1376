/**
 * For every rule of the definition of HeartbeatCheck one manifest that it lets pass and one that it refuses. The unit lane runs
 * them through our own schema, and finds a rule that has no case; the cluster lane runs them through a real API server.
 */

/** What is written over the smallest manifest. */
export interface Manifest {
  readonly name?: string
  /** Undefined takes it away. */
  readonly spec?: Readonly<Record<string, unknown>> | undefined
  readonly status?: Readonly<Record<string, unknown>>
}

export interface RuleCase {
  /** Path of the field that has the rule; `*` stands for any key of a map, `[]` for any element of a list. */
  readonly field: string
  /** The keyword of the schema, or the message of the CEL rule. */
  readonly rule: string
  readonly accepted: Manifest
  readonly refused: Manifest
  /** What the API server says: the rule's own message, or this. */
  readonly says: string
  /** Where the API server says that it is. */
  readonly at: string
}

interface More {
  readonly says?: string
  readonly at?: string
}

export function aCase(field: string, rule: string, accepted: Manifest, refused: Manifest, more: More = {}): RuleCase {
  return { field, rule, accepted, refused, says: rule, at: field, ...more }
}

/** The cases of a number's two bounds. */
export function bounds(
  field: string,
  { min, max }: { min: number; max: number },
  place: (value: number) => Manifest,
  at = field,
) {
  return [
    aCase(field, 'minimum', place(min), place(min - 1), { says: `should be greater than or equal to ${min}`, at }),
    aCase(field, 'maximum', place(max), place(max + 1), { says: `should be less than or equal to ${max}`, at }),
  ]
}

/** The case of a text's length, counted in code points. */
export function longest(field: string, max: number, place: (value: string) => Manifest, letter = 'n', more: More = {}) {
  const says = `Too long: may not be more than ${max} bytes`
  return aCase(field, 'maxLength', place(letter.repeat(max)), place(letter.repeat(max + 1)), { says, ...more })
}

/** The case of a map's size. */
export function mostEntries(field: string, max: number, place: (value: Record<string, string>) => Manifest) {
  const entries = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))
  const says = `Too many: ${max + 1}: must have at most ${max} items`
  return aCase(field, 'maxProperties', place(entries(max)), place(entries(max + 1)), { says })
}

/** The cases of a shape: its pattern, which programs read, and the rule that says in words what is wrong. */
export function shape(field: string, rule: string, accepted: Manifest, refused: Manifest, more: More = {}) {
  const { at = field } = more
  const words = aCase(field, rule, accepted, refused, { at })
  // Of an entry of a map the pattern names the path in another way.
  const path = at.replace(/\[([a-z]+)\]$/, '.$1')
  return [words, aCase(field, 'pattern', accepted, refused, { says: 'should match', at: path })]
}

export const withPeriod = (fields: object): Manifest => ({ spec: { periodSeconds: 60, ...fields } })
