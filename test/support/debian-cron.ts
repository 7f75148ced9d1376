/**
 * A model of Debian's cron that shares nothing with ours: it wakes once a minute as vixie cron 3.0pl1 does with Debian's patch for changed clocks
 * (cron.c, entry.c), and compares the minute that the clocks show with bits of the fields.
 */

const MINUTE_MS = 60_000
/** `3 * MINUTE_COUNT` of cron.c. */
const THREE_HOURS = 180

interface Entry {
  readonly minute: ReadonlySet<number>
  readonly hour: ReadonlySet<number>
  readonly dom: ReadonlySet<number>
  readonly month: ReadonlySet<number>
  readonly dow: ReadonlySet<number>
  readonly isMinuteStar: boolean
  readonly isHourStar: boolean
  readonly isDomStar: boolean
  readonly isDowStar: boolean
}

function loadEntry(line: string): Entry {
  const [minute = '', hour = '', dom = '', month = '', dow = ''] = line.split(' ')
  const weekdays = getList(dow, 0, 7)
  if (weekdays.has(0) || weekdays.has(7)) weekdays.add(0).add(7)
  return {
    minute: getList(minute, 0, 59),
    hour: getList(hour, 0, 23),
    dom: getList(dom, 1, 31),
    month: getList(month, 1, 12),
    dow: weekdays,
    isMinuteStar: minute[0] === '*',
    isHourStar: hour[0] === '*',
    isDomStar: dom[0] === '*',
    isDowStar: dow[0] === '*',
  }
}

function getList(field: string, low: number, high: number): Set<number> {
  const bits = new Set<number>()
  for (const range of field.split(',')) {
    const [, first = '', last, step = '1'] = /^(\*|\d+)(?:-(\d+))?(?:\/(\d+))?$/.exec(range)!
    const from = first === '*' ? low : Number(first)
    const to = first === '*' ? high : Number(last ?? first)
    for (let value = from; value <= to; value += Number(step)) bits.add(value)
  }
  return bits
}

/** `find_jobs`: whether the entry runs in this minute of the clocks, counted as if they were UTC. */
function isFound(entry: Entry, virtualMinute: number, doWild: boolean, doNonWild: boolean): boolean {
  const time = new Date(virtualMinute * MINUTE_MS)
  const isDom = entry.dom.has(time.getUTCDate())
  const isDow = entry.dow.has(time.getUTCDay())
  const isDay = entry.isDomStar || entry.isDowStar ? isDom && isDow : isDom || isDow
  const isWild = entry.isMinuteStar || entry.isHourStar
  return (
    entry.minute.has(time.getUTCMinutes()) &&
    entry.hour.has(time.getUTCHours()) &&
    entry.month.has(time.getUTCMonth() + 1) &&
    isDay &&
    ((doNonWild && !isWild) || (doWild && isWild))
  )
}

/** The minutes that the clocks of a zone show at each minute from `from` on, counted as if they were UTC. */
export function readClocks(zone: string, from: number, to: number): number[] {
  const format = new Intl.DateTimeFormat('en-CA', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: '2-digit',
    day: '2-digit',
    hour: '2-digit',
    minute: '2-digit',
  })
  const shown: number[] = []
  for (let at = from; at <= to; at += MINUTE_MS) {
    const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
    shown.push(Date.UTC(part.year!, part.month! - 1, part.day!, part.hour!, part.minute!) / MINUTE_MS)
  }
  return shown
}

/** The instants at which cron runs the line, each once. `clocks`: as `readClocks` gives them; cron was started a minute before `from`. */
export function runCron(line: string, clocks: readonly number[], from: number): number[] {
  const entry = loadEntry(line)
  const runs: number[] = []
  let virtual = clocks[0]! - 1
  for (const [minutes, running] of clocks.entries()) {
    const difference = running - virtual
    let isRun = false
    if (difference > THREE_HOURS || difference <= -THREE_HOURS) {
      virtual = running
      isRun = isFound(entry, running, true, true)
    } else if (difference > 5) {
      isRun = isFound(entry, running, true, false)
      while (virtual < running) isRun = isFound(entry, ++virtual, false, true) || isRun
    } else if (difference > 0) {
      while (virtual < running) isRun = isFound(entry, ++virtual, true, true) || isRun
    } else isRun = isFound(entry, running, true, false)
    if (isRun) runs.push(from + minutes * MINUTE_MS)
  }
  return runs
}
