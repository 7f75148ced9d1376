/** Secrets that people choose, and that strangers try first. Secrets of random characters pass, also those of digits alone. */

/** Those of the documents and examples, which everyone can read. A test finds them there. */
export const PUBLISHED: ReadonlySet<string> = new Set([
  'hbk_demo_0123456789abcdef0123456789abcdef',
  'hbk_7f3a9c21_2b9e4d6f8a1c3e5b7d9f0a2c4e6b8d0f',
  'correct horse battery staple',
  'four other random words',
])
const FEWEST_DIFFERENT = 6

/** Why the key or password can be guessed, as words about it; null when nothing shows that, or there is none. */
export function findWeakness(secret: string | undefined): string | null {
  if (secret === undefined) return null
  if (PUBLISHED.has(secret)) return 'is an example of the documents'
  // Of an API key the prefix is no secret.
  const text = /^hbk_[^_]*_(.*)$/.exec(secret)?.[1] ?? secret
  return findPattern([...text].map((letter) => letter.codePointAt(0)!))
}

/** The same for the characters or bytes of a secret. */
export function findPattern(codes: readonly number[]): string | null {
  if (new Set(codes).size < FEWEST_DIFFERENT) return 'has too few different characters'
  if (isMostly(codes, 1, (code, before) => Math.abs(code - before) <= 1)) return 'is a sequence of characters'
  for (let length = 1; length <= codes.length / 2; length += 1)
    if (isMostly(codes, length, (code, before) => code === before)) return 'repeats itself'
  return null
}

/** Whether it holds for more than two thirds of the characters and those that stand `distance` before them. */
function isMostly(
  codes: readonly number[],
  distance: number,
  holds: (code: number, before: number) => boolean,
): boolean {
  const count = codes.slice(distance).filter((code, place) => holds(code, codes[place]!)).length
  return count * 3 > (codes.length - distance) * 2
}
