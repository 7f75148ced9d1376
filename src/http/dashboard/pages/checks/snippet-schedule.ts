/** The schedule of a check as the snippets write it: for a crontab, and for a CronJob. */

import { type Dialect, parseCron } from '../../../../domain/cron.ts'
import { type ScheduleTexts, spellPlainly } from '../../words/schedule-words.ts'
import { yamlText } from './literals.ts'

/** A line for cron. A period becomes one that fits. */
export function forCrontab({ periodSeconds, schedule, timeZone, dialect }: ScheduleTexts): string {
  if (schedule === null) return fitting(periodSeconds)
  return dialect === 'cron' ? schedule.trim() : (spellForAll(schedule, timeZone, 'kubernetes') ?? fitting(null))
}

/** A value in YAML for a CronJob, with a comment where Kubernetes cannot say what cron does. */
export function forCronJob({ periodSeconds, schedule, timeZone, dialect }: ScheduleTexts): string {
  if (schedule === null) return yamlText(fitting(periodSeconds))
  if (dialect !== 'cron' || isReadAlike(schedule, timeZone)) return yamlText(schedule)
  const plain = spellForAll(schedule, timeZone, 'cron')
  if (plain !== null) return yamlText(plain)
  return `${yamlText(schedule)} # cron: on days that match both fields of days; a CronJob: on days that match one`
}

function isReadAlike(schedule: string, timeZone: string | null): boolean {
  const [cron, kubernetes] = (['cron', 'kubernetes'] as const).map((dialect) =>
    JSON.stringify(read(schedule, timeZone, dialect)),
  )
  return cron === kubernetes
}

/** In plain spellings. Null: the dialect rejects the schedule. */
function read(schedule: string, timeZone: string | null, dialect: Dialect): ReturnType<typeof spellPlainly> | null {
  try {
    return spellPlainly(parseCron(schedule, timeZone ?? 'UTC', dialect))
  } catch {
    return null
  }
}

/** Five fields that every reader reads alike; null: there are none. */
function spellForAll(schedule: string, timeZone: string | null, dialect: Dialect): string | null {
  const [first, second] = read(schedule, timeZone, dialect) ?? []
  if (first === undefined) return null
  const [, , day, , weekday] = first
  // With both a day of the month and a weekday, one of them is enough for every reader. Only cron has a spelling that
  // asks for both.
  const isBoth = second === undefined && day !== '*' && weekday !== '*'
  return isBoth ? null : [...first.slice(0, 4), (second ?? first)[4]].join(' ')
}

const MINUTE = 60
const HOUR = 3_600
const DAY = 86_400

/** An expression that comes at least as often as the period. */
function fitting(periodSeconds: number | null): string {
  if (periodSeconds === null) return '0 2 * * *'
  const largest = (size: number, most: number) => {
    let step = Math.min(most, Math.floor(periodSeconds / size))
    while (most % step !== 0) step--
    return step === 1 ? '*' : `*/${step}`
  }
  if (periodSeconds < HOUR) return `${periodSeconds < MINUTE ? '*' : largest(MINUTE, 60)} * * * *`
  if (periodSeconds < DAY) return `0 ${largest(HOUR, 24)} * * *`
  return periodSeconds < 7 * DAY ? '0 2 * * *' : '0 2 * * 0'
}
