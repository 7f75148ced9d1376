/**
 * How a job reports to its check, in the languages of users. Each snippet runs as it is, tries four times, ten seconds
 * each, and never changes the result of the job. docs/use/pings.md has the same programs, and explains them.
 */

import { readFileSync } from 'node:fs'
import { type Dialect, parseCron } from '../../../../domain/cron.ts'
import { type ScheduleTexts, spellPlainly } from '../../words/schedule-words.ts'
import { quoteForShell, yamlText } from './literals.ts'

/** What the snippets know of a check. */
export interface SnippetCheck extends ScheduleTexts {
  readonly pingUrl: string
  readonly slug: string
  /** The HeartbeatCheck that declares the check. By default it publishes the URL in a Secret beside it. */
  readonly kubernetes: { readonly namespace: string; readonly name: string } | null
  /** Its Jobs report by themselves, so that its HeartbeatCheck publishes nothing by default. Default: false. */
  readonly isFollowed?: boolean
}

export const SNIPPET_IDS = ['curl', 'crontab', 'bash', 'kubernetes', 'python', 'node', 'go', 'powershell'] as const
export type SnippetId = (typeof SNIPPET_IDS)[number]

export interface Snippet {
  readonly id: SnippetId
  readonly title: string
  /** Where it goes, what it needs. */
  readonly note: string
  readonly text: string
}

const readProgram = (file: string) => readFileSync(new URL(`snippets/${file}`, import.meta.url), 'utf8')
const PROGRAMS = {
  bash: readProgram('job.bash'),
  kubernetes: readProgram('cron-job.yaml'),
  python: readProgram('job.py'),
  node: readProgram('job.mjs'),
  go: readProgram('job.go'),
  powershell: readProgram('job.ps1'),
}

export function snippetsOf(check: SnippetCheck): Snippet[] {
  const { pingUrl: url } = check
  const program = (id: keyof typeof PROGRAMS, title: string, note: string, literal: string): Snippet => {
    return { id, title, note, text: withUrl(PROGRAMS[id], literal) }
  }
  return [
    {
      id: 'curl',
      title: 'curl',
      note: 'Put it behind the last command of your job. Run it now to try it.',
      text: `${CURL} ${quoteForShell(url)} || ${WARN}\n`,
    },
    {
      id: 'crontab',
      title: 'crontab',
      note: 'Add it with "crontab -e". It reports failures too, by their exit code.',
      text: crontab(check),
    },
    program(
      'bash',
      'bash, with output and exit code',
      'It reports the start, the exit code and the end of the output, which is then part of the alert.',
      quoteForShell(url),
    ),
    {
      id: 'kubernetes',
      title: 'Kubernetes CronJob',
      note:
        check.kubernetes === null
          ? 'The ping URL is in a Secret. Apply it with "kubectl apply -f", with the image and the command of your job.'
          : `${publishedNote(check)} Put in the image and the command of your job.`,
      text: cronJob(check),
    },
    program('python', 'Python', 'Python 3.6 or later; it needs no package.', quote(url)),
    program('node', 'Node.js', 'Node.js 18 or later. Save it as job.mjs.', quote(url)),
    program('go', 'Go', 'It needs the standard library only.', quote(url)),
    program('powershell', 'PowerShell', 'PowerShell 5.1 or later.', quoteForPowerShell(url)),
  ]
}

function publishedNote({ kubernetes, isFollowed = false }: SnippetCheck): string {
  const secret = `the Secret ${kubernetes?.name}-heartbeat, with the key HEARTBEAT_URL`
  const others =
    'Where its spec.publish has another name, write that under envFrom; for the kind ConfigMap write configMapRef instead of secretRef; for another key, that instead of HEARTBEAT_URL in the command.'
  return isFollowed
    ? `The Jobs of the CronJob report by themselves, so the HeartbeatCheck publishes no ping URL by default (spec.publish.kind None). For pings beside them set that to Secret: the URL is then in ${secret}. ${others}`
    : `By default the HeartbeatCheck publishes the ping URL in ${secret}. ${others} With the kind None it publishes nothing: set that to Secret.`
}

/** The service may be starting: a rejected connection is tried again. Old curl has no --retry-all-errors. */
const CURL = 'curl -fsS -m 10 --retry 3 --retry-connrefused -o /dev/null'
const WARN = "echo 'the heartbeat could not be sent' >&2"

/** `url`: the ping URL as a literal of the language, with quotes escaped, which no URL has. */
function withUrl(program: string, url: string): string {
  return program.replace(/(['"])\{\{url\}\}\1/, () => url)
}

/** A string of JSON is a string of Python, JavaScript and Go. */
const quote = (text: string): string => JSON.stringify(text)

const quoteForPowerShell = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** In a crontab, % ends the command. The exit code goes behind the URL, outside of the quotes. */
function crontab({ pingUrl, timeZone, ...rest }: SnippetCheck): string {
  const command = `/path/to/your-job; ${CURL} ${quoteForShell(pingUrl)}/$?`.replaceAll('%', '\\%')
  const zone =
    rest.schedule === null || timeZone === null
      ? ''
      : `# The check expects these times in ${timeZone}; cron reads them in the time zone of the machine.\n`
  return `${zone}${forCrontab({ timeZone, ...rest })} ${command}\n`
}

/** A name of a CronJob has at most 52 characters of a-z, 0-9 and -; a name of a Secret more. */
const CRON_JOB_NAME_LENGTH = 52

function cronJob(check: SnippetCheck): string {
  const { kubernetes, slug, pingUrl, schedule, timeZone } = check
  const base = (kubernetes?.name ?? slug).replace(/[^a-z0-9-]/g, '-').slice(0, CRON_JOB_NAME_LENGTH)
  const name = base.replace(/^-+|-+$/g, '') || 'job'
  const secret = yamlText(`${kubernetes?.name ?? name}-heartbeat`)
  const origin = kubernetes === null ? '' : ' # spec.publish.name of the HeartbeatCheck, if it has one'
  const values: Record<string, string | null> = {
    name: yamlText(name),
    namespace: kubernetes === null ? null : yamlText(kubernetes.namespace),
    schedule: forCronJob(check),
    time_zone: schedule === null || timeZone === null ? null : yamlText(timeZone),
    secret: `${secret}${origin}`,
  }
  // A line without a value is left out.
  const manifest = PROGRAMS.kubernetes.replace(/^(.*)\{\{(\w+)\}\}\n/gm, (_, before: string, value: string) =>
    values[value] == null ? '' : `${before}${values[value]}\n`,
  )
  return kubernetes === null ? `${secretOf(secret, pingUrl)}---\n${manifest}` : manifest
}

function secretOf(name: string, pingUrl: string): string {
  return `apiVersion: v1
kind: Secret
metadata:
  name: ${name}
stringData:
  HEARTBEAT_URL: ${yamlText(pingUrl)}
`
}

// The schedule of the check, for a crontab and for a CronJob
// ---------------------------------------------------------------------------------------------------------------------

/** A line for cron. A period becomes one that fits. */
function forCrontab({ periodSeconds, schedule, timeZone, dialect }: ScheduleTexts): string {
  if (schedule === null) return fitting(periodSeconds)
  return dialect === 'cron' ? schedule.trim() : (spellForAll(schedule, timeZone, 'kubernetes') ?? fitting(null))
}

/** A value in YAML for a CronJob, with a comment where Kubernetes cannot say what cron does. */
function forCronJob({ periodSeconds, schedule, timeZone, dialect }: ScheduleTexts): string {
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
