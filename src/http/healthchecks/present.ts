/** Checks, pings and flips as healthchecks shows them. */

import type { CheckRecord } from '../../checks/find-checks.ts'
import type { FlipRecord } from '../../checks/find-history.ts'
import type { NumberedPing } from '../../checks/number-pings.ts'
import type { BadgeSubject } from '../../domain/badge.ts'
import { type Instant, isRunning, shownStatus } from '../../domain/check.ts'
import { badgePath } from '../badges/path.ts'
import { uniqueKeyOf } from './unique-key.ts'

export type Version = 1 | 2 | 3

/** What the fields of a check need besides the check. */
export interface View {
  readonly version: Version
  readonly now: Instant
  /** The public addresses of the management port and of the ping API, without a slash at their ends. */
  readonly siteUrl: string
  readonly pingUrl: string
  /** Null: the project has no badges. */
  readonly badgeKey: string | null
  /** All channels that the check can notify. Null for a key that may read only: it sees no addresses and no uuid. */
  readonly channelIds: readonly string[] | null
}

export function presentCheck(check: CheckRecord, view: View) {
  const { name, slug, slugLeftEmpty, tags, description, spec, state, publicId } = check
  const { version, now } = view
  const { lastDurationMs, lastPingAt, expectedAt } = state
  const status = shownStatus(state, now)
  const started = isStarted(check, now)
  const isExpected = status === 'up' || status === 'late'
  return {
    name,
    slug: slugLeftEmpty ? '' : slug,
    tags: tags.join(' '),
    desc: description ?? '',
    grace: spec.graceSeconds,
    n_pings: state.pingsTotal,
    status: version === 1 && started ? 'started' : status === 'late' ? 'grace' : status,
    started,
    last_ping: toSecond(lastPingAt),
    next_ping: toSecond(isExpected ? expectedAt : null),
    manual_resume: !spec.resumeOnPing,
    methods: '',
    subject: '',
    subject_fail: '',
    start_kw: '',
    success_kw: '',
    failure_kw: '',
    filter_subject: false,
    filter_body: false,
    filter_http_body: false,
    filter_default_fail: false,
    badge_url: view.badgeKey === null ? '' : `${view.siteUrl}${badgePath(view.badgeKey, { kind: 'check', slug })}.svg`,
    ...(lastDurationMs === null || lastDurationMs === 0 ? {} : { last_duration: Math.floor(lastDurationMs / 1_000) }),
    ...(view.channelIds === null ? { unique_key: uniqueKeyOf(publicId) } : addresses(check, view, view.channelIds)),
    ...(spec.schedule === null ? { timeout: spec.periodSeconds } : { schedule: spec.schedule, tz: spec.timeZone }),
  }
}

/**
 * Healthchecks knows one start, the last one. A fail ends the run, and so does a success without a run id, a success
 * with the same run id, a pause or a resume. A ping that healthchecks ignores starts no run. Our state has no run id of
 * the last completion: a success whose duration is not known counts as a success without a run id.
 */
function isStarted({ spec, state }: Pick<CheckRecord, 'spec' | 'state'>, now: Instant): boolean {
  const { status, since, reason, runs, lastStartAt, lastPingAt, lastSuccessAt, lastDurationMs } = state
  const running = runs.filter((run) => isRunning(run, now))
  if (status === 'paused' && !spec.resumeOnPing) return false
  const after = status === 'paused' || reason === 'resumed' ? since : Number.NEGATIVE_INFINITY
  // The end of a Job is always reported.
  if (running.some(({ slotAt, startedAt }) => slotAt !== undefined && startedAt >= after)) return true
  const last = running.find(({ startedAt }) => startedAt === lastStartAt)
  if (last === undefined || last.startedAt < after) return false
  if (lastPingAt === null || lastPingAt <= last.startedAt) return true
  const isSuccess = lastSuccessAt !== null && lastSuccessAt >= lastPingAt
  return isSuccess && lastDurationMs !== null
}

function addresses(
  { publicId, channels }: Pick<CheckRecord, 'publicId' | 'channels'>,
  { siteUrl, pingUrl, version }: View,
  channelIds: readonly string[],
) {
  const url = checkUrl(siteUrl, version, publicId)
  return {
    uuid: publicId,
    ping_url: `${pingUrl}/ping/${publicId}`,
    update_url: url,
    pause_url: `${url}/pause`,
    resume_url: `${url}/resume`,
    channels: [...(channels ?? channelIds)].sort().join(','),
  }
}

const checkUrl = (siteUrl: string, version: Version, uuid: string) => `${siteUrl}/api/v${version}/checks/${uuid}`

/** The addresses of the badges of these tags; `*`: of all checks of the project. */
export function presentBadges(tags: readonly string[], { siteUrl, badgeKey }: Pick<View, 'siteUrl' | 'badgeKey'>) {
  if (badgeKey === null) return {}
  const formsOf = (subject: BadgeSubject) => sixForms(siteUrl + badgePath(badgeKey, subject))
  const ofTags = tags.map((tag) => [tag, formsOf({ kind: 'tag', tag })] as const)
  return Object.fromEntries([['*', formsOf({ kind: 'project' })] as const, ...ofTags])
}

/** Those without a 3 know no `late`. */
function sixForms(address: string): Record<string, string> {
  const forms = ['svg', 'json', 'shields'].flatMap((form) => [
    [form, `${address}.${form}?states=2`] as const,
    [`${form}3`, `${address}.${form}`] as const,
  ])
  return Object.fromEntries(forms)
}

export function presentPing(
  { number, hasBody, ping }: NumberedPing,
  uuid: string,
  view: Pick<View, 'siteUrl' | 'version'>,
) {
  const { createdAt, runId, durationMs } = ping
  const body = `${checkUrl(view.siteUrl, view.version, uuid)}/pings/${number}/body`
  return {
    // Healthchecks knows no warning.
    type: ping.type === 'warn' ? 'success' : ping.type,
    date: toMicroseconds(createdAt),
    n: number,
    // What we do not store.
    scheme: '',
    remote_addr: '',
    method: '',
    ua: '',
    rid: runId,
    ...(durationMs === null ? {} : { duration: Math.round(durationMs / 10) / 100 }),
    body_url: hasBody ? body : null,
  }
}

/**
 * Healthchecks has a flip for each change of the status, but none for the creation, and none for what our own downtime
 * hid. `next`: the flip that followed, if any. A completion that ends a pause is one change there. Here it is two
 * changes at the same time, and the second one names the ping.
 */
export function isShown({ from, to, reason, at }: FlipRecord, next: FlipRecord | undefined): boolean {
  const isStep = reason === 'resumed' && next !== undefined && next.pingId !== null && next.at - at <= STEP_MS
  return from !== null && from !== to && reason !== 'outage' && !isStep
}

/** Entries of one moment have different microseconds, and may be of two milliseconds. */
const STEP_MS = 1

export function presentFlip({ at, to }: FlipRecord) {
  return { timestamp: toSecond(at), up: to === 'up' ? 1 : 0 }
}

/** As Python writes a time: `2020-03-24T14:02:03+00:00`. */
function toSecond(at: Instant): string
function toSecond(at: Instant | null): string | null
function toSecond(at: Instant | null): string | null {
  return at === null ? null : `${new Date(at).toISOString().slice(0, 19)}+00:00`
}

/** `2020-06-09T14:51:06.113073+00:00` */
function toMicroseconds(at: Instant): string {
  const micros = Math.round(at * 1_000) % 1_000_000
  const fraction = micros === 0 ? '' : `.${String(micros).padStart(6, '0')}`
  return `${new Date(Math.floor(Math.round(at * 1_000) / 1_000)).toISOString().slice(0, 19)}${fraction}+00:00`
}
