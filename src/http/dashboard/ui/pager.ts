/** The way through a list that is longer than its page. */

import { type Html, html, type Part } from '../html.ts'

export interface PagerOptions {
  /** The address of the first page; null on that page. */
  readonly first: string | null
  /** The address of the page that follows; null on the last page. */
  readonly next: string | null
  readonly words?: readonly [first: string, next: string]
  /** Stands before the links. */
  readonly note?: Part
}

/** The words for a list whose first page has the newest. */
export const BY_TIME = ['Newest', 'Older'] as const

export function pager({ first, next, words = ['First page', 'Next page'], note }: PagerOptions): Html {
  if (first === null && next === null) return html``
  return html`<nav class="pager" aria-label="Pages">
${note === undefined ? '' : html`<span class="muted">${note}</span>`}
${first === null ? '' : html`<a href="${first}">${words[0]}</a>`}
${next === null ? '' : html`<a href="${next}" rel="next">${words[1]}</a>`}
</nav>`
}

/** An address with what `query` gives. */
export function addressOf(path: string, query: Readonly<Record<string, string | null | undefined>>): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}
