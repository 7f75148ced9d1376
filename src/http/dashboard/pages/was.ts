/**
 * What a user changed in a form. A form comes back with a digest of each value that it showed, so that only the other
 * values are sent on: what another user changed meanwhile stays.
 */

import { createHash } from 'node:crypto'
import { type Html, html } from '../html.ts'

/** The name of the field with the digests. */
export const WAS = 'was'

/** The values of a form, always in the same order. */
type Values<Name extends string> = Readonly<Record<Name, string>>

/** Browsers send the line breaks of a text as CRLF, whatever they were. */
export const toLines = (text: string): string => text.replace(/\r\n?/g, '\n')

export function digestValues(values: Values<string>): string {
  return Object.values(values).map(digest).join('.')
}

function digest(value: string): string {
  return createHash('sha256').update(toLines(value)).digest('base64url').slice(0, 12)
}

/** `was`: of a form that came back, whose digests stay. */
export function wasField(values: Values<string>, was?: string | null): Html {
  return html`<input type="hidden" name="${WAS}" value="${was ?? digestValues(values)}">`
}

/**
 * The fields of a form that differ from what the form showed. All of its fields where the digest is of no form of ours.
 * `boxes`: fields of which a browser sends nothing when no box is checked.
 */
export function changedFields<Name extends string>(
  form: URLSearchParams,
  values: Values<Name>,
  boxes: readonly Name[] = [],
): ReadonlySet<Name> {
  const names = Object.keys(values) as Name[]
  const before = form.get(WAS)?.split('.') ?? []
  const isChanged = (name: Name, index: number) =>
    (form.has(name) || boxes.includes(name)) &&
    (before.length !== names.length || digest(values[name]) !== before[index])
  return new Set(names.filter(isChanged))
}
