/** The icons. They stand beside a word, so screen readers skip them. The only home of Octicons. */

import octicons from '@primer/octicons'
import { type Html, html, type Part, trusted } from './html.ts'

export type IconName = keyof typeof NAMES

/** Our word for each icon, and the word of the library. */
const NAMES = {
  up: 'check-circle-fill',
  late: 'clock-fill',
  down: 'x-circle-fill',
  paused: 'pause',
  new: 'circle',
  running: 'play',
  heart: 'heart-fill',
  add: 'plus',
  copy: 'copy',
  search: 'search',
  ascending: 'triangle-up',
  descending: 'triangle-down',
} as const

/** A state by shape, word and colour. */
export function badge(state: IconName, words: Part): Html {
  return html`<span class="status status-${state}">${icon(state)} ${words}</span>`
}

/** 16 pixels, in the colour of the text. */
export function icon(name: IconName): Html {
  return trusted(octicons[NAMES[name]]!.toSVG({ class: `icon icon-${name}` }))
}
