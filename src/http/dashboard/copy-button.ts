/** Buttons that copy a text of the page; the script does it (assets/dashboard.js). */

import { type Html, html } from './html.ts'
import { icon } from './icons.ts'

/** `target`: the id of the element with the text. `of`: what is copied, for screen readers. */
export function copyButton(target: string, of: string): Html {
  return html`<button type="button" class="secondary outline small script-only" data-copy="${target}">${icon('copy')} Copy<span class="visually-hidden"> ${of}</span></button>`
}
