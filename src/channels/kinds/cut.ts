/** Text that is cut to the limit of a service, between two characters. */

const ELLIPSIS = '…'

/**
 * The beginning of the text, with `…` where something is missing. `pieces`: what may not be divided, such as the escape
 * of one character. `limit`: UTF-16 units.
 */
export function cutEnd(pieces: readonly string[], limit: number): string {
  return fits(pieces, limit) ? pieces.join('') : takeUntil(pieces, limit - ELLIPSIS.length).join('') + ELLIPSIS
}

/**
 * The end of the text, by the same rules: the end of a log says why a job failed. The end begins with a whole line, unless
 * half of what fits would be lost.
 */
export function cutStart(pieces: readonly string[], limit: number): string {
  if (fits(pieces, limit)) return pieces.join('')
  const kept = takeUntil(pieces.toReversed(), limit - ELLIPSIS.length)
    .toReversed()
    .join('')
  const lineEnd = kept.indexOf('\n')
  return ELLIPSIS + (lineEnd < kept.length / 2 ? kept.slice(Math.max(lineEnd, 0)) : kept)
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

/**
 * The longest of `compose(lines of the beginning)` within the limit. `compose` gets none of the lines first, and that
 * fits.
 */
export function composeLines<Line>(
  lines: readonly Line[],
  limit: number,
  compose: (shown: readonly Line[]) => string,
): string {
  let text = compose([])
  for (let shown = 1; shown <= lines.length; shown += 1) {
    const longer = compose(lines.slice(0, shown))
    if (longer.length > limit) break
    text = longer
  }
  return text
}
