/** The `config` of a channel as fields of a form, by what its kind declares (channels/kinds/kind.ts). */

import type { ConfigField } from '../../../../channels/kinds/kind.ts'
import { type Html, html } from '../../html.ts'

/** The name of the input in the form. */
export const inputOf = ({ name }: ConfigField): string => `config.${name}`

/** Reads what was typed. An empty line is an absent field, so that its fault says that it is required. */
export function readConfigForm(fields: readonly ConfigField[], form: URLSearchParams): object {
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = readField(field, form.get(inputOf(field)) ?? '')
      return value === undefined ? [] : [[field.name, value]]
    }),
  )
}

function readField({ as }: ConfigField, text: string): unknown {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  if (as === undefined) return lines.length === 0 ? undefined : lines.join('\n')
  // What is no integer stays a text, whose fault says so.
  if (as === 'number') return lines.length === 0 ? undefined : /^-?\d+$/.test(text.trim()) ? Number(text) : text
  if (as === 'lines') return lines
  // A line without `=` becomes a label with an empty value, whose fault names it.
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf('=')
      return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()]
    }),
  )
}

/** How a shown config stands in the form. */
export function writeConfigForm(fields: readonly ConfigField[], config: object | null): URLSearchParams {
  const form = new URLSearchParams()
  for (const field of fields) form.set(inputOf(field), itemsOf(field, config).join('\n'))
  return form
}

/** The value of a field, line by line. */
function itemsOf({ name, as }: ConfigField, config: object | null): string[] {
  const value = (config as Record<string, unknown> | null)?.[name]
  if (value === undefined || value === null) return []
  if (as === 'lines') return value as string[]
  if (as === 'pairs') return Object.entries(value as Record<string, string>).map(([key, text]) => `${key}=${text}`)
  return [String(value)]
}

/** The value of a field, to look at. */
export function showField(field: ConfigField, config: object): Html {
  const items = itemsOf(field, config)
  if (items.length === 0) return html`<span class="muted">none</span>`
  return html`${items.map((item, index) => html`${index === 0 ? '' : html`<br>`}<code><bdi>${item}</bdi></code>`)}`
}

/** Faults below a field, in words for its label: `urls.1` is the second line. */
export function describeFault({ label, as }: ConfigField, below: string, message: string): string {
  if (below === '') return `${label} ${message}`
  return as === 'lines' ? `${label}, line ${Number(below) + 1}: ${message}` : `${label}, ${below}: ${message}`
}
