/** A choice of one of several values. */

import { toOneLine } from '../../../domain/plain-text.ts'
import { type Html, html } from '../html.ts'

/** A value and its words. */
export type Choice = readonly [value: string, words: string]

/** `attributes`: with its name. */
export function select(attributes: Html, choices: readonly Choice[], chosen: string | undefined): Html {
  return html`<select ${attributes}>
${choices.map(([value, words]) => html`<option value="${value}"${value === chosen ? html` selected` : ''}>${toOneLine(words)}</option>\n`)}</select>`
}
