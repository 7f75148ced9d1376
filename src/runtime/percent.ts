/** Percent-encoding in parts of a URL. */

/** Whether each `%` in the text begins a valid escape. */
export function isDecodable(text: string): boolean {
  return decode(text) !== null
}

/** The decoded text. A text with a stray `%` is returned as it is. */
export function decodePercent(text: string): string {
  return decode(text) ?? text
}

function decode(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
