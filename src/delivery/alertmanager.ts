/**
 * Alertmanagers, by version 2 of their API. One lets an alert fire until its end, which we move on again and again, and forgets
 * all of them when it restarts. So what it is to believe is kept in the table `alerts`: the sender of events writes it down and
 * tells it at once, and the keeper (keep-alerts.ts) tells it again, also what a delivery could not tell.
 *
 * The peers of a cluster share silences and what they have notified, never alerts: each is told.
 */

import type { OpenChannel } from '../domain/channel.ts'
import type { Instant } from '../domain/check.ts'
import { AppError } from '../domain/errors.ts'
import type { CheckTold } from '../domain/event.ts'
import { type Clock, startTimer } from '../runtime/clock.ts'
import { claimUntil, finishTelling, raiseAlert, resolveAlert, type ToldAlert } from '../store/outbox/alerts.ts'
import type { Database } from '../store/postgres/database.ts'
import { areSame, buildAlert, buildTestAlert, fire, type PostableAlert, resolve } from './alert.ts'
import type { HttpClient } from './http.ts'
import { sendForOutcome } from './http-outcome.ts'
import type { Links } from './links.ts'
import type { Outcome, Send } from './outcome.ts'

export type AlertmanagerChannel = OpenChannel<'alertmanager'>

/** Between two tellings of the same, a fraction of ALERT_LIFE_MS. */
const TELL_EVERY_MS = 60_000
/** After one that a peer did not hear. */
export const TELL_SOON_MS = 10_000

export interface AlertmanagerParts {
  readonly client: HttpClient
  /** The database's time. */
  readonly clock: Pick<Clock, 'now'>
  readonly links: Links
  readonly database: Database
}

/** How long the other peers are waited for once one has it: the keeper will tell them. */
const OTHERS_MS = 1_000

export function createAlertmanagerSender(parts: AlertmanagerParts): Send<'alertmanager'> {
  const { clock, links, database } = parts
  const peers = createPeers(parts, OTHERS_MS)

  async function raise(channel: AlertmanagerChannel, event: CheckTold, checkKey: number, signal: AbortSignal) {
    const now = clock.now()
    const claim = { channelId: channel.id, checkKey, until: claimUntil(now) }
    const alert = buildAlert(event, channel.settings.labels)
    const { isNewest, before } = await raiseAlert(database, claim, alert)
    if (!isNewest) return nothingToTell('a later alert of the check has taken its place')
    const link = links.check(event.check.id)
    const replaced = before !== null && !areSame(before.labels, alert.labels)
    const alerts = [...(replaced ? [resolve(before, before.resolvedAt ?? now, link)] : []), fire(alert, now, link)]
    return tellAndFinish(channel, alerts, { checkKey, labels: alert.labels, resolvedAt: null }, claim.until, signal)
  }

  async function takeBack(channel: AlertmanagerChannel, event: CheckTold, checkKey: number, signal: AbortSignal) {
    const now = clock.now()
    const claim = { channelId: channel.id, checkKey, until: claimUntil(now) }
    const alert = await resolveAlert(database, claim, event.at, now)
    if (alert === null) return nothingToTell('no alert of the check was firing')
    const resolvedAt = alert.resolvedAt ?? now
    const posted = resolve(alert, resolvedAt, links.check(event.check.id))
    return tellAndFinish(channel, [posted], { checkKey, labels: alert.labels, resolvedAt }, claim.until, signal)
  }

  async function tellAndFinish(
    channel: AlertmanagerChannel,
    alerts: readonly PostableAlert[],
    told: Omit<ToldAlert, 'nextAt'>,
    until: Instant,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const telling = await peers.tell(channel, alerts, signal)
    const nextAt = clock.now() + waitAfter(telling, told.resolvedAt !== null)
    await finishTelling(database, channel.id, [{ ...told, nextAt }], until)
    return telling.outcome
  }

  return async ({ channel, event, checkKey }, signal) => {
    try {
      if (event.type === 'channel.test') {
        const alert = buildTestAlert(event, channel.settings.labels, clock.now())
        return (await peers.tell(channel, [alert], signal)).outcome
      }
      if (event.type === 'check.down') return await raise(channel, event, checkKey!, signal)
      if (event.type === 'check.up' || event.type === 'check.paused')
        return await takeBack(channel, event, checkKey!, signal)
      return nothingToTell(`an Alertmanager is not told of ${event.type}`)
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== 'unavailable') throw error
      return { kind: 'retry', status: null, error: 'the database did not answer; the delivery is repeated' }
    }
  }
}

function nothingToTell(note: string): Outcome {
  return { kind: 'delivered', status: null, note }
}

/**
 * How long the same may wait to be told again. An end that we just gave goes out once more soon: a peer whose clock is far behind
 * ours has not taken it for one (alert.ts).
 */
export function waitAfter({ missed }: Telling, isFirstEnd: boolean): number {
  return missed === 'passing' || isFirstEnd ? TELL_SOON_MS : TELL_EVERY_MS
}

export interface Telling {
  /** Delivered as soon as one peer has all of it. */
  readonly outcome: Outcome
  /** Whether there are peers that do not have it, and may have it soon. */
  readonly missed: 'nobody' | 'passing' | 'for good'
}

export interface Peers {
  /** Tells all peers of the channel at once, in the order given. */
  tell(channel: AlertmanagerChannel, alerts: readonly PostableAlert[], signal: AbortSignal): Promise<Telling>
}

/** A peer that kept us waiting for so long ... */
const LONG_MS = 900
/** ... is left out for a while, if there are others. */
const LEFT_OUT_MS = 20_000
/** Proxies refuse a megabyte and more (nginx: client_max_body_size). */
const POST_CHARACTERS = 300_000

/** @param othersMs how long the others are waited for once one peer has it; null: as long as the signal lets them. */
export function createPeers(
  { client, clock }: Pick<AlertmanagerParts, 'client' | 'clock'>,
  othersMs: number | null,
): Peers {
  const silent = new Map<string, { until: Instant; outcome: Outcome }>()

  async function tell(
    { settings: { urls }, isTrusted }: AlertmanagerChannel,
    alerts: readonly PostableAlert[],
    signal: AbortSignal,
  ): Promise<Telling> {
    const bodies = renderPosts(alerts)
    const isAnyAwake = urls.some((url) => !isSilent(url))
    const enough = new AbortController()
    let stopTimer = () => {}
    const outcomes = await Promise.all(
      urls.map(async (url): Promise<Outcome> => {
        if (isAnyAwake && isSilent(url)) return silent.get(url)!.outcome
        const outcome = await post(url, bodies, isTrusted, AbortSignal.any([signal, enough.signal]))
        if (outcome.kind === 'delivered' && othersMs !== null) {
          stopTimer()
          stopTimer = startTimer(othersMs, () => enough.abort())
        }
        return outcome
      }),
    )
    stopTimer()
    return sumUp(outcomes)
  }

  async function post(
    url: string,
    bodies: readonly string[],
    isTrusted: boolean,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const startedAt = clock.now()
    let outcome: Outcome = { kind: 'delivered', status: null }
    for (const body of bodies) {
      const headers = { 'content-type': 'application/json' }
      const request = { method: 'POST', url: alertsUrl(url), headers, body, isTrusted } as const
      outcome = await sendForOutcome(client, request, signal, clock)
      if (outcome.kind !== 'delivered') break
    }
    const endedAt = clock.now()
    if (outcome.kind === 'retry' && endedAt - startedAt >= LONG_MS) leaveOut(url, outcome, endedAt)
    else silent.delete(url)
    return outcome
  }

  const isSilent = (url: string) => (silent.get(url)?.until ?? 0) > clock.now()

  function leaveOut(url: string, outcome: Outcome, now: Instant): void {
    // Of channels that are gone nobody asks any more.
    for (const [other, { until }] of silent) if (until <= now) silent.delete(other)
    silent.set(url, { until: now + LEFT_OUT_MS, outcome })
  }

  return { tell }
}

function sumUp(outcomes: readonly Outcome[]): Telling {
  const delivered = outcomes.find((outcome) => outcome.kind === 'delivered')
  const failed = outcomes.filter((outcome) => outcome.kind !== 'delivered')
  const passing = failed.filter((outcome) => outcome.kind === 'retry')
  const missed = passing.length > 0 ? 'passing' : failed.length > 0 ? 'for good' : 'nobody'
  const error = failed.map((outcome) => outcome.error).join('; ')
  if (delivered !== undefined)
    return {
      missed,
      outcome: missed === 'nobody' ? delivered : { ...delivered, note: `not told everywhere: ${error}` },
    }
  const first = passing[0]
  if (first === undefined) return { missed, outcome: { kind: 'refused', status: failed[0]?.status ?? null, error } }
  // The peer that may be asked first decides; without a word of its own that is as soon as usual.
  const retryAfterMs = Math.min(...passing.map((outcome) => outcome.retryAfterMs ?? 0))
  const retry = { kind: 'retry', status: first.status, error } as const
  return { missed, outcome: retryAfterMs > 0 ? { ...retry, retryAfterMs } : retry }
}

/** JSON arrays of a bearable length. */
function renderPosts(alerts: readonly PostableAlert[]): string[] {
  const posts: string[][] = []
  let characters = Number.POSITIVE_INFINITY
  for (const alert of alerts) {
    const text = JSON.stringify(alert)
    if (characters + text.length > POST_CHARACTERS) {
      posts.push([])
      characters = 0
    }
    posts.at(-1)!.push(text)
    characters += text.length
  }
  return posts.map((texts) => `[${texts.join(',')}]`)
}

/** What may come before the path of the API is the peer's own (`--web.route-prefix`). */
function alertsUrl(peer: string): string {
  const url = URL.parse(peer)
  // The client says what is wrong with it.
  if (url === null) return peer
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/v2/alerts`
  return url.href
}
