/**
 * The addresses in a text that a person wrote: the description of a check is the place for a runbook, whose address the
 * reader of a message taps. Each kind makes a link of it that shows the address itself.
 */

export interface Piece {
  readonly text: string
  /** An http or https address, whole. */
  readonly isAddress: boolean
}

/** White space, what is invisible, and what people put around an address. */
const AROUND = String.raw`\s\p{C}<>"\x60{}|\\^[\]()…“”„‘’«»。、，`
/** Wikis have such pages. The bracket of a sentence around an address has no pair within it. */
const BRACKETS = String.raw`\([^${AROUND}]*\)`
/** It does not end with punctuation. Takes linear time: the alternatives exclude each other. */
const ADDRESS = new RegExp(`(https?://(?:[^${AROUND}]|${BRACKETS})*(?:[^${AROUND}.,:;!?'*]|${BRACKETS}))`, 'giu')

/** The text in pieces, none of them empty: addresses, and what is between them. */
export function splitAddresses(text: string): Piece[] {
  return text
    .split(ADDRESS)
    .map((piece, index) => ({ text: piece, isAddress: index % 2 === 1 && URL.canParse(piece) }))
    .filter((piece) => piece.text !== '')
}

/** For `cutEnd`: characters, and whole addresses, because the beginning of an address leads elsewhere. */
export function indivisible(text: string): string[] {
  return splitAddresses(text).flatMap((piece) => (piece.isAddress ? [piece.text] : [...piece.text]))
}

/** As HTML. `escapeHtml`: for texts and attributes. */
export function linkAddresses(text: string, escapeHtml: (text: string) => string): string {
  return splitAddresses(text)
    .map((piece) =>
      piece.isAddress ? `<a href="${escapeHtml(piece.text)}">${escapeHtml(piece.text)}</a>` : escapeHtml(piece.text),
    )
    .join('')
}
