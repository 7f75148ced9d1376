/** From what the management API of healthchecks shows to our checks. */

import { z } from 'zod'
import { NO_SPEC } from '../../checks/read-spec.ts'
import { CHANNEL_KINDS } from '../../domain/channel.ts'
import { type CheckTexts, NO_TEXTS } from '../../domain/check.ts'
import { isUuid } from '../../domain/ids.ts'
import { LIMITS } from '../../domain/limits.ts'
import type { GivenSpec } from '../../store/checks/columns.ts'
import type { ChoosableChannel } from '../../store/outbox/channels.ts'
import { type SourceCheck, SourceError, type SourceItem } from '../source.ts'
import { fitDescription, fitName, fitSeconds, fitSlug, fitTags } from '../texts.ts'
import type { GetJson } from './client.ts'

const text = z.string().nullish().catch(null)

/** What we read of a check. Older instances leave some of it out. */
const Check = z.object({
  name: text,
  slug: text,
  tags: text,
  desc: text,
  uuid: text,
  unique_key: text,
  update_url: text,
  ping_url: text,
  status: text,
  channels: text,
  timeout: z.number().nullish(),
  schedule: text,
  tz: text,
  grace: z.number(),
  last_ping: text,
  last_duration: z.number().nullish(),
  manual_resume: z.boolean().nullish(),
  methods: text,
  start_kw: text,
  success_kw: text,
  failure_kw: text,
  subject: text,
  subject_fail: text,
  filter_subject: z.boolean().nullish(),
  filter_body: z.boolean().nullish(),
  filter_http_body: z.boolean().nullish(),
  filter_default_fail: z.boolean().nullish(),
})
type Check = z.infer<typeof Check>
const Checks = z.object({ checks: z.array(z.unknown()) })
const Channel = z.object({ id: text, name: text, kind: text })
const Channels = z.object({ channels: z.array(Channel) })

/** What pings by e-mail and filters decide there, and nothing decides here. */
const WITHOUT_COUNTERPART = [
  ...(['methods', 'start_kw', 'success_kw', 'failure_kw', 'subject', 'subject_fail'] as const),
  ...(['filter_subject', 'filter_body', 'filter_http_body', 'filter_default_fail'] as const),
]
const ON_CALENDAR = 'its schedule is an OnCalendar expression: give it a cron schedule there, and import again'
const UP = ['up', 'grace', 'started']

/**
 * In the order of the source, checks first. `here`: the channels that a check of the project can choose; one that has
 * the name of a channel there takes its place. Throws SourceError.
 */
export async function readHealthchecks(get: GetJson, here: readonly ChoosableChannel[]): Promise<SourceItem[]> {
  const checks = Checks.safeParse(await get('checks'))
  const channels = Channels.safeParse(await get('channels'))
  if (!checks.success || !channels.success)
    throw new SourceError('the address does not respond as healthchecks does: its lists have another shape')
  const ours = new Map(here.map(({ name, id }) => [name, id]))
  const known = channels.data.channels.map((channel): KnownChannel => {
    return { ...channel, here: ours.get(channel.name ?? '') ?? null }
  })
  return [...checks.data.checks.map((given, place) => toItem(given, place, known)), ...known.map(toChannelItem)]
}

/** A channel there. `here`: the id of the channel that has its name; null: none has. */
interface KnownChannel extends z.infer<typeof Channel> {
  readonly here: string | null
}

function toChannelItem({ id, name, kind, here }: KnownChannel): SourceItem {
  const what = `channel ${name || id || ''} (${kind ?? 'unknown kind'})`
  if (here !== null) return { kind: 'there already', name: what, reason: '' }
  const isOurs = CHANNEL_KINDS.some((one) => one === kind)
  const create = isOurs ? `create one of the kind ${kind} here` : 'create one here (docs/use/receivers.md has the kind)'
  const named = name ? `, with this name before the import: the checks that notify it choose it` : ''
  return { kind: 'left out', name: what, reason: `healthchecks shows no address of a channel: ${create}${named}` }
}

function toItem(given: unknown, place: number, known: readonly KnownChannel[]): SourceItem {
  const parsed = Check.safeParse(given)
  if (!parsed.success) {
    const fields = [...new Set(parsed.error.issues.map(({ path }) => path.join('.') || 'it'))]
    return { kind: 'refused', name: `check ${place + 1}`, reason: `cannot be read: ${fields.join(', ')}` }
  }
  const check = parsed.data
  const publicId = idOf(check)
  if (publicId === null) {
    if (check.unique_key)
      throw new SourceError('the key is a read-only one, which shows no ids of checks: give a read-write API key')
    return { kind: 'refused', name: check.name || `check ${place + 1}`, reason: 'has no uuid' }
  }
  // As healthchecks tells them apart.
  if (check.schedule && check.schedule.trim().split(/\s+/).length !== 5)
    return { kind: 'refused', name: check.name || publicId, reason: ON_CALENDAR }
  return toCheck(check, publicId, known)
}

/** Instances without `uuid` have it at the end of their addresses. */
function idOf({ uuid, update_url, ping_url }: Check): string | null {
  const candidates = [uuid, update_url?.split('/').at(-1), ping_url?.split('/').at(-1)]
  return candidates.find((id): id is string => typeof id === 'string' && isUuid(id))?.toLowerCase() ?? null
}

function toCheck(check: Check, publicId: string, known: readonly KnownChannel[]): SourceCheck {
  const notes: string[] = []
  const slug = check.slug ?? ''
  const name = fitName(check.name ?? '', slug || `check-${publicId.slice(0, 8)}`, notes)
  const texts: CheckTexts = {
    ...NO_TEXTS,
    name,
    description: fitDescription(check.desc ?? '', notes),
    tags: fitTags((check.tags ?? '').split(/\s+/).filter(Boolean), notes),
    channels: toChannels(check.channels, known, notes),
  }
  const lost = WITHOUT_COUNTERPART.filter((field) => check[field])
  if (lost.length > 0) notes.push(`is without its ${lost.join(', ')}`)
  const isPaused = check.status === 'paused'
  const past = {
    isUp: UP.includes(check.status ?? ''),
    isPaused,
    lastPingAt: toInstant(check.last_ping),
    lastDurationMs: toDurationMs(check.last_duration),
  }
  const armed = !isPaused && check.status !== 'new'
  const leftEmpty = check.slug === '' ? ({ slugLeftEmpty: true } as const) : {}
  const made = { name, identity: { publicId }, slug: fitSlug(slug, name, notes), ...leftEmpty, texts, armed, past }
  return { kind: 'check', ...made, spec: toSpec(check, notes), notes }
}

function toSpec(check: Check, notes: string[]): GivenSpec {
  const { schedule, timeout, tz, grace, manual_resume } = check
  const limits = {
    ...NO_SPEC,
    graceSeconds: fitSeconds(grace, LIMITS.graceSeconds, 'grace time', notes),
    resumeOnPing: manual_resume !== true,
  }
  // As in healthchecks a schedule comes before a period.
  if (schedule) return { ...limits, periodSeconds: null, schedule, timeZone: tz || null }
  const period = fitSeconds(timeout ?? LIMITS.periodSeconds.default, LIMITS.periodSeconds, 'period', notes)
  return { ...limits, periodSeconds: period, schedule: null, timeZone: null }
}

/** None stays none, and all stay all. Chosen ones are those of the same names here, if all are here. */
function toChannels(
  given: string | null | undefined,
  known: readonly KnownChannel[],
  notes: string[],
): string[] | null {
  if (!given) return given === '' ? [] : null
  const ids = given.split(',')
  const chosen = known.filter(({ id }) => id != null && ids.includes(id))
  if (chosen.length === known.length) return null
  const here = [...new Set(chosen.flatMap((channel) => channel.here ?? []))]
  const missing = chosen.filter((channel) => channel.here === null)
  if (missing.length === 0 && here.length > 0) return here
  const names = missing.map(({ name, id }) => name || id).join(', ')
  notes.push(`notifies all channels of the project, as there is no channel ${names} here: choose them here`)
  return null
}

/** Null for none, and for one that is no time of a ping: our times end with the year 9999. */
function toInstant(given: string | null | undefined): number | null {
  const at = Date.parse(given ?? '')
  return at >= 0 && at < Date.UTC(10_000, 0) ? at : null
}

function toDurationMs(seconds: number | null | undefined): number | null {
  const ms = Math.round((seconds ?? Number.NaN) * 1_000)
  return ms >= 0 && ms <= LIMITS.durationMs ? ms : null
}
