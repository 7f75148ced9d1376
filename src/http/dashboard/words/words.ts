/** Texts of people and errors. */

import { type Html, html } from '../html.ts'

/** Messages of AppErrors begin in lower case and have no full stop. */
export function sentence(message: string): string {
  return `${message.slice(0, 1).toUpperCase()}${message.slice(1)}.`
}

/** A description often says where it is written what to do. The end of a sentence is no part of an address. */
export function withLinks(text: string): Html {
  const parts = text.split(/(https?:\/\/[^\s<>"']+)/)
  return html`${parts.map((part, index) => (index % 2 === 0 ? part : toLink(part)))}`
}

function toLink(text: string): Html | string {
  const address = withoutEnd(text)
  if (address.endsWith('://')) return text
  return html`<a href="${address}" rel="noopener noreferrer">${address}</a>${text.slice(address.length)}`
}

/** Without the marks at its end, and without brackets that it has not opened. */
function withoutEnd(text: string): string {
  let end = text.length
  let unmatched = text.split(')').length - text.split('(').length
  for (; end > 0; end -= 1) {
    const last = text[end - 1]!
    if (last === ')' && unmatched > 0) unmatched -= 1
    else if (!'.,;:!?'.includes(last)) break
  }
  return text.slice(0, end)
}
