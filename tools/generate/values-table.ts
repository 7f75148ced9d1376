/**
 * The table of values in the chart's README, from the comments in values.yaml: a line that begins with `# --` documents the
 * value below it; a map with such a line is one row.
 */

import { isMap, isScalar, type Pair, parseDocument, type YAMLMap } from 'yaml'

const BEGIN = '<!-- values: begin -->'
const END = '<!-- values: end -->'
const MARK = '-- '

export interface ValueRow {
  /** `api.resources`. */
  readonly path: string
  readonly about: string
  /** As JSON, on one line. */
  readonly preset: string
}

/** Throws for a value that has no comment, and for a README without the two marks. */
export function replaceValuesTable(readme: string, valuesYaml: string): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)]
  if (begin < 0 || end < begin) throw new Error(`the chart's README must hold ${BEGIN} and, behind it, ${END}`)
  const rows = listValues(valuesYaml).map(
    ({ path, about, preset }) => `| \`${path}\` | \`${preset}\` | ${about.replaceAll('|', '\\|')} |`,
  )
  const table = ['| Value | Default | Meaning |', '|---|---|---|', ...rows].join('\n')
  return `${readme.slice(0, begin)}${BEGIN}\n${table}\n${readme.slice(end)}`
}

/** In the order of the file. */
export function listValues(valuesYaml: string): ValueRow[] {
  const { contents } = parseDocument(valuesYaml)
  if (!isMap(contents)) throw new Error('values.yaml holds no map')
  return listMap(contents, '')
}

function listMap(map: YAMLMap, prefix: string): ValueRow[] {
  return (map.items as Pair[]).flatMap((pair, index) => {
    const path = `${prefix}${keyOf(pair)}`
    // What stands before the first key belongs, for the parser, to the map around it.
    const comments = [index === 0 ? map.commentBefore : null, isScalar(pair.key) ? pair.key.commentBefore : null]
    const about = comments.map(readAbout).find((text) => text !== null)
    const { value } = pair
    if (about !== undefined) return [{ path, about: about as string, preset: JSON.stringify(toPlain(value)) }]
    if (isMap(value) && value.items.length > 0) return listMap(value, `${path}.`)
    throw new Error(`values.yaml: ${path} has no comment that begins with # ${MARK}`)
  })
}

function keyOf({ key }: Pair): string {
  return String(isScalar(key) ? key.value : key)
}

/** Null: the comment documents no value. */
function readAbout(comment: string | null | undefined): string | null {
  const lines = (comment ?? '').split('\n').map((line) => line.trim())
  const mark = lines.findLastIndex((line) => line.startsWith(MARK))
  return mark < 0 ? null : lines.slice(mark).join(' ').slice(MARK.length)
}

function toPlain(value: unknown): unknown {
  return (value as { toJSON?: () => unknown } | null)?.toJSON?.() ?? null
}
