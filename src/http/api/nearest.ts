/** Finds the known name that a mistyped one stands for. */

/** Longer names are not compared: the work grows with the square of the length. */
const MAX_LENGTH = 40
/** Shorter ones are the beginning of too many names. */
const MIN_PREFIX = 3

/** The nearest of `known`; null when none is near: more than a third of the letters are others, and neither name begins with the other. */
export function findNearest(name: string, known: readonly string[]): string | null {
  if (name.length > MAX_LENGTH) return null
  const given = fold(name)
  let nearest: string | null = null
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const distance = measure(given, fold(candidate))
    if (distance >= least) continue
    nearest = candidate
    least = distance
  }
  return nearest
}

/** `periodSeconds` and `period-seconds` are `period_seconds`. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}

/** 0 for equal names, infinite for names that are not near. */
function measure(given: string, known: string): number {
  const [short, long] = given.length < known.length ? [given, known] : [known, given]
  if (short.length >= MIN_PREFIX && long.startsWith(short)) return given === known ? 0 : 0.5
  const distance = countEdits(short, long)
  return distance <= long.length / 3 ? distance : Number.POSITIVE_INFINITY
}

/** The number of letters to insert, remove, replace or swap with their neighbour (optimal string alignment). */
function countEdits(one: string, other: string): number {
  let before: number[] = []
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i += 1) {
    const next = [i]
    for (let j = 1; j <= other.length; j += 1) {
      const isSame = one[i - 1] === other[j - 1]
      const isSwap = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (isSame ? 0 : 1),
        isSwap ? before[j - 2]! + 1 : Number.POSITIVE_INFINITY,
      )
    }
    before = row
    row = next
  }
  return row[other.length]!
}
