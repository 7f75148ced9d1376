/** The way from a section to a page, above its title. */

import { type Html, html, type Part } from '../html.ts'

/** An address and its words. */
export type Crumb = readonly [to: string, words: Part]

/** `here`: what the page itself is, if its title does not say so. */
export function crumbs(above: readonly Crumb[], here?: Part): Html {
  return html`<nav class="crumbs" aria-label="Where you are">
${above.map(([to, words], index) => html`${index === 0 ? '' : ' / '}<a href="${to}">${words}</a>`)}
${here === undefined ? '' : html`/ <span aria-current="page">${here}</span>`}
</nav>`
}
