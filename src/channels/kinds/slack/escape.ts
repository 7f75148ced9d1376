/** Escapes of untrusted text in messages of Slack and Mattermost. */

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' }

/** One piece for each code point, for `cutEnd` and `cutStart` (channels/kinds/cut.ts). */
export function escapePieces(text: string): string[] {
  return Array.from(text, (character) => ESCAPES[character] ?? character)
}

export const escapeText = (text: string) => escapePieces(text).join('')

/** Inside <...|...> a bar or a bracket would end the address. */
export function escapeUrl(url: string): string {
  return escapeText(url.replace(/[|<>\s]/g, encodeURIComponent))
}
