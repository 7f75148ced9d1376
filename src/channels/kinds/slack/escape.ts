/** Untrusted text in messages of Slack, Mattermost and Discord: escaped, disarmed, and cut between two characters. */

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

/** One piece for each code point. A text may be cut between two pieces. */
export function escapePieces(text: string): string[] {
  return Array.from(text, (character) => ESCAPES[character] ?? character)
}

export const escapeText = (text: string) => escapePieces(text).join('')

/** Inside <...|...> a bar or a bracket would end the address. */
export function escapeUrl(url: string): string {
  return escapeText(url.replace(/[|<>\s]/g, encodeURIComponent))
}

const ELLIPSIS = '…'

export function cutEnd(pieces: readonly string[], limit: number): string {
  return fits(pieces, limit) ? pieces.join('') : takeUntil(pieces, limit - ELLIPSIS.length).join('') + ELLIPSIS
}

export function cutStart(pieces: readonly string[], limit: number): string {
  if (fits(pieces, limit)) return pieces.join('')
  const kept = takeUntil(pieces.toReversed(), limit - ELLIPSIS.length)
  return ELLIPSIS + kept.toReversed().join('')
}

function fits(pieces: readonly string[], limit: number): boolean {
  return pieces.reduce((length, piece) => length + piece.length, 0) <= limit
}

function takeUntil(pieces: readonly string[], limit: number): string[] {
  let length = 0
  const end = pieces.findIndex((piece) => {
    length += piece.length
    return length > limit
  })
  return pieces.slice(0, end)
}
