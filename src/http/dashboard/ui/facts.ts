/** What is known of one thing: names and values. */

import { type Html, html, type Part } from '../html.ts'

/** Null: not known, and left out. `wide`: over the whole width. */
export type Fact = readonly [name: string, value: Part, wide?: 'wide']

export function facts(list: readonly Fact[]): Html {
  const known = list.filter(([, value]) => value !== null)
  return html`<dl class="facts">
${known.map(([name, value, wide]) => html`<div${wide === undefined ? '' : html` class="wide"`}><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}
