/**
 * Labels of a check: names and values by Kubernetes' rules, so that a check has those of its HeartbeatCheck as they are. Prometheus and
 * Alertmanagers allow fewer characters in a name (design, section 3.1).
 */

export type Labels = Readonly<Record<string, string>>

const PREFIX_LENGTH = 253
/** How many labels a check has, and how long a name is, with its prefix and the slash between them. */
export const LABELS = { max: 32, nameLength: PREFIX_LENGTH + 1 + 63, valueLength: 63 } as const

const WORD = '[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?'
const SUBDOMAIN = '[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:[.][a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*'

/** A name with or without a prefix, `team` or `example.com/team` (IsQualifiedName of Kubernetes), apart from the length of the prefix. */
export const LABEL_NAME = `^(?:${SUBDOMAIN}/)?${WORD}$`
/** May be empty. */
export const LABEL_VALUE = `^(?:${WORD})?$`

export const LABEL_NAME_RULE =
  'must have a name of up to 63 letters, digits, -, _ and . that begins and ends with a letter or digit, alone or after a prefix such as example.com/'
export const LABEL_VALUE_RULE = `must be text of at most ${LABELS.valueLength} letters, digits, -, _ and . that begins and ends with a letter or digit, or be empty`

const NAME = new RegExp(LABEL_NAME)
const VALUE = new RegExp(LABEL_VALUE)

export function isLabelName(name: string): boolean {
  return name.length <= LABELS.nameLength && name.indexOf('/') <= PREFIX_LENGTH && NAME.test(name)
}

export function isLabelValue(value: unknown): boolean {
  return typeof value === 'string' && value.length <= LABELS.valueLength && VALUE.test(value)
}

/** The same labels in the order of their names: as people read them, and as two texts of them are compared. */
export function sortLabels(labels: Labels): Labels {
  return Object.fromEntries(Object.entries(labels).sort(byName))
}

/** The labels that a check can have of these: the first by name. `dropped`: the names of the others. */
export function limitLabels(labels: Labels): { readonly labels: Labels; readonly dropped: readonly string[] } {
  const entries = Object.entries(labels).sort(byName)
  return {
    labels: Object.fromEntries(entries.slice(0, LABELS.max)),
    dropped: entries.slice(LABELS.max).map(([name]) => name),
  }
}

const byName = ([one]: readonly [string, string], [other]: readonly [string, string]) => (one < other ? -1 : 1)

/** With `_` for the characters that a label of Prometheus cannot have. It may begin with a digit, which such a label cannot. */
export function toPrometheusName(name: string): string {
  return name.replace(/[^A-Za-z0-9_]/g, '_')
}

/** How many labels of a check its series have: each multiplies by its values. */
const SERIES_LABELS = 10

/** What is wrong with different names of labels for the series of checks, as a message; null when nothing is. */
export function findSeriesLabelsFault(names: readonly string[]): string | null {
  const wrong = names.findIndex((name) => !isLabelName(name))
  if (wrong >= 0)
    return `must be names of labels separated by commas, such as team,app.kubernetes.io/part-of: entry ${wrong + 1} is not valid`
  if (names.length > SERIES_LABELS) return `must have at most ${SERIES_LABELS} entries, and has ${names.length}`
  const labels = names.map(toSeriesLabel)
  const second = labels.findIndex((label, index) => labels.indexOf(label) < index)
  if (second < 0) return null
  const first = names[labels.indexOf(labels[second]!)]
  return `must not have both ${first} and ${names[second]}: each would be the label ${labels[second]} of a series`
}

/** The label of the check's series that has the value of the label `name`. No label of ours begins like it. */
export function toSeriesLabel(name: string): string {
  return `label_${toPrometheusName(name)}`
}
