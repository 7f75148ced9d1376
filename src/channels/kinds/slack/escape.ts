/** Untrusted text in messages of Slack, Mattermost and Discord: escaped and disarmed. */

const INVISIBLE = '\u200b'

/** Three backticks would end the code block, and the text after them would be parsed for mentions and links. */
export function breakFences(text: string): string {
  return text.replace(/`{3,}/g, (fence) => [...fence].join(INVISIBLE))
}

/** `@channel`, `<#id>`, `~channel`, `https://...`, `www....` and `[words](address)`, as Mattermost and Discord know them. */
export function disarm(text: string): string {
  return text.replace(/[@<~`]|:(?=\/\/)|www(?=\.)|\](?=[([])/gi, (piece) => piece + INVISIBLE)
}

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
