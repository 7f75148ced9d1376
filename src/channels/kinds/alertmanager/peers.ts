/** Posts alerts to the peers of an Alertmanager cluster. Peers share silences, never alerts: each gets all of them. */

import type { HttpClient } from '../../../delivery/http.ts'
import { postJson } from '../../../delivery/http-outcome.ts'
import type { Outcome } from '../../../delivery/outcome.ts'
import type { OpenChannel } from '../../../domain/channel.ts'
import type { Instant } from '../../../domain/check.ts'
import { type Clock, startTimer } from '../../../runtime/clock.ts'
import type { PostableAlert } from './alert.ts'
import type { AlertmanagerSettings } from './config.ts'

export interface PostResult {
  /** Delivered as soon as one peer has accepted everything. */
  readonly outcome: Outcome
  /** Another post can soon reach a peer that did not accept. */
  readonly isMissed: boolean
}

/** Posts to all peers of the channel at the same time. Each gets the alerts in the given order. Never throws. */
export type PostToPeers = (
  channel: OpenChannel<AlertmanagerSettings>,
  alerts: readonly PostableAlert[],
  signal: AbortSignal,
) => Promise<PostResult>

/** A peer that fails after LONG_MS or more is skipped for SKIP_MS, as long as another peer is not skipped. */
const LONG_MS = 900
const SKIP_MS = 20_000
/** Proxies reject bodies of a megabyte (nginx: client_max_body_size). */
const POST_CHARACTERS = 300_000
/** Posts of alerts repeat until they reach each peer: soon after a temporary failure, else every minute. Both are a fraction of ALERT_LIFE_MS. */
const REPEAT_MS = 60_000
export const REPEAT_SOON_MS = 10_000

/** The first end of an alert is repeated soon: a peer whose clock is far behind did not take it for an end (`resolve` in alert.ts). */
export function repeatDelayMs({ isMissed }: PostResult, isFirstEnd: boolean): number {
  return isMissed || isFirstEnd ? REPEAT_SOON_MS : REPEAT_MS
}

/** @param othersMs how long to wait for the other peers after the first has accepted; null: until the signal aborts. */
export function createPeers(
  context: { readonly client: HttpClient; readonly clock: Pick<Clock, 'now'> },
  othersMs: number | null,
): PostToPeers {
  const { clock } = context
  const skipped = new Map<string, { until: Instant; outcome: Outcome }>()
  const isSkipped = (url: string) => (skipped.get(url)?.until ?? 0) > clock.now()

  return async (channel, alerts, signal) => {
    const { urls } = channel.settings
    const bodies = renderBodies(alerts)
    const maySkip = urls.some((url) => !isSkipped(url))
    const enough = new AbortController()
    let stopTimer = () => {}
    const outcomes = await Promise.all(
      urls.map(async (url): Promise<Outcome> => {
        if (maySkip && isSkipped(url)) return skipped.get(url)!.outcome
        const outcome = await postTo(url, bodies, channel, AbortSignal.any([signal, enough.signal]))
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

  async function postTo(
    url: string,
    bodies: readonly string[],
    channel: OpenChannel,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const startedAt = clock.now()
    let outcome: Outcome = { kind: 'delivered', status: null }
    for (const body of bodies) {
      outcome = await postJson(context, channel, { url: alertsUrl(url), body }, signal)
      if (outcome.kind !== 'delivered') break
    }
    const endedAt = clock.now()
    if (outcome.kind === 'retry' && endedAt - startedAt >= LONG_MS) skip(url, outcome, endedAt)
    else skipped.delete(url)
    return outcome
  }

  function skip(url: string, outcome: Outcome, now: Instant): void {
    // Expired entries go here: those of removed channels are never read again.
    for (const [other, { until }] of skipped) if (until <= now) skipped.delete(other)
    skipped.set(url, { until: now + SKIP_MS, outcome })
  }
}

function sumUp(outcomes: readonly Outcome[]): PostResult {
  const delivered = outcomes.find((outcome) => outcome.kind === 'delivered')
  const failed = outcomes.filter((outcome) => outcome.kind !== 'delivered')
  const temporary = failed.filter((outcome) => outcome.kind === 'retry')
  // A peer that refuses takes the next post, or none. Any other failure is tried for longer than a refusal.
  const missed = temporary.find(({ isRefusal }) => isRefusal !== true)
  const isMissed = missed !== undefined
  const error = failed.map((outcome) => outcome.error).join('; ')
  if (delivered !== undefined) {
    const note = failed.length === 0 ? {} : { note: `not accepted by every peer: ${error}` }
    return { isMissed, outcome: { ...delivered, ...note } }
  }
  const first = missed ?? temporary[0]
  if (first === undefined) return { isMissed, outcome: { kind: 'rejected', status: failed[0]?.status ?? null, error } }
  // The shortest wait counts. A peer that asked for none may be tried again as soon as usual.
  const retryAfterMs = Math.min(...temporary.map((outcome) => outcome.retryAfterMs ?? 0))
  return { isMissed, outcome: { ...first, error, retryAfterMs } }
}

/** JSON arrays of limited length. */
function renderBodies(alerts: readonly PostableAlert[]): string[] {
  const bodies: string[][] = []
  let characters = Number.POSITIVE_INFINITY
  for (const alert of alerts) {
    const text = JSON.stringify(alert)
    if (characters + text.length > POST_CHARACTERS) {
      bodies.push([])
      characters = 0
    }
    bodies.at(-1)!.push(text)
    characters += text.length
  }
  return bodies.map((texts) => `[${texts.join(',')}]`)
}

/** The peer's URL may have a path of its own (`--web.route-prefix`). */
function alertsUrl(peer: string): string {
  const url = URL.parse(peer)
  // The client reports what is wrong with it.
  if (url === null) return peer
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/v2/alerts`
  return url.href
}
