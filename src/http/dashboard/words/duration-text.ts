/** Lengths of time in words, and as users type them. Pure. */

const UNITS = [
  { name: 'week', seconds: 604_800 },
  { name: 'day', seconds: 86_400 },
  { name: 'hour', seconds: 3_600 },
  { name: 'minute', seconds: 60 },
  { name: 'second', seconds: 1 },
] as const

/** Exact: `1 hour 30 minutes`, `45 seconds`, `2 weeks`. Weeks stand alone: ten days are `10 days`. */
export function spellDuration(seconds: number): string {
  if (seconds === 0) return '0 seconds'
  const parts: string[] = []
  let rest = seconds
  for (const { name, seconds: size } of UNITS) {
    if (name === 'week' && rest % size !== 0) continue
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count} ${name}${count === 1 ? '' : 's'}`)
  }
  return parts.join(' ')
}

/** `Every 15 minutes`, `Every hour`, `Every 1 hour 30 minutes`. */
export function everyWords(seconds: number): string {
  const one = UNITS.find((unit) => unit.seconds === seconds)
  return `Every ${one === undefined ? spellDuration(seconds) : one.name}`
}

const SECONDS_OF: ReadonlyMap<string, number> = new Map([
  ['', 1],
  ...spellings(1, 's sec secs second seconds'),
  ...spellings(60, 'm min mins minute minutes'),
  ...spellings(3_600, 'h hr hrs hour hours'),
  ...spellings(86_400, 'd day days'),
  ...spellings(604_800, 'w wk wks week weeks'),
])

function spellings(seconds: number, names: string): [string, number][] {
  return names.split(' ').map((name) => [name, seconds])
}

// Each takes a text in one way alone, so that no text takes long.
const PART = /(\d+(?:\.\d+)?)\s*([a-z]*)/y
const BETWEEN = /\s*(?:,|and\b)?\s*/y

/** More is no length of time that a user types. */
const MOST_CHARACTERS = 100

/**
 * Seconds: `15 min`, `1h30m`, `1 hour 30 minutes`, `1.5 h`; a number alone is seconds, as in the API. Null for other text, and for a length
 * that is no whole number of seconds.
 */
export function parseDuration(text: string): number | null {
  const given = text.trim().toLowerCase()
  if (given.length > MOST_CHARACTERS) return null
  let sum = 0
  let at = 0
  for (;;) {
    const [part, number, unit] = matchAt(PART, given, at) ?? []
    const size = SECONDS_OF.get(unit ?? '')
    if (part === undefined || size === undefined || (unit === '' && part !== given)) return null
    sum += Number(number) * size
    at += part.length
    if (at === given.length) break
    at += matchAt(BETWEEN, given, at)![0].length
  }
  // 1.1 h is 3960.0000000000005 s.
  const whole = Math.round(sum)
  return Math.abs(sum - whole) < 1e-6 ? whole : null
}

function matchAt(sticky: RegExp, text: string, at: number): RegExpExecArray | null {
  sticky.lastIndex = at
  return sticky.exec(text)
}
