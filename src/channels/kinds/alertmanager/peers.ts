/** Posts alerts to the peers of an Alertmanager cluster. Peers share silences, never alerts: each gets all of them. */

import type { HttpClient } from '../../../delivery/http.ts'
import { postJson } from '../../../delivery/http-outcome.ts'
import type { Outcome } from '../../../delivery/outcome.ts'
import type { OpenChannel } from '../../../domain/channel.ts'
import { type Clock, startTimer } from '../../../runtime/clock.ts'
import type { PostableAlert } from './alert.ts'
import type { AlertmanagerSettings } from './config.ts'

export interface PostResult {
  /** Delivered as soon as one peer has accepted everything. */
  readonly outcome: Outcome
  /** Another post can soon reach a peer that did not accept. */
  readonly isMissed: boolean
}

/** Proxies reject bodies of a megabyte (nginx: client_max_body_size). */
const POST_CHARACTERS = 300_000
/** Posts of alerts repeat until they reach each peer: soon after a temporary failure, else every minute. Both are a fraction of ALERT_LIFE_MS. */
const REPEAT_MS = 60_000
export const REPEAT_SOON_MS = 10_000

/** The first end of an alert is repeated soon: a peer whose clock is far behind did not take it for an end (`resolve` in alert.ts). */
export function repeatDelayMs({ isMissed }: PostResult, isFirstEnd: boolean): number {
  return isMissed || isFirstEnd ? REPEAT_SOON_MS : REPEAT_MS
}

/**
 * Posts to all peers of the channel at the same time. Each gets the alerts in the given order. Never throws.
 * `othersMs`: how long to wait for the other peers after the first has accepted.
 */
export async function postToPeers(
  context: { readonly client: HttpClient; readonly clock: Pick<Clock, 'now'> },
  channel: OpenChannel<AlertmanagerSettings>,
  alerts: readonly PostableAlert[],
  signal: AbortSignal,
  othersMs: number,
): Promise<PostResult> {
  const bodies = renderBodies(alerts)
  const enough = new AbortController()
  const stopTimers: (() => void)[] = []
  const either = AbortSignal.any([signal, enough.signal])

  async function postTo(peer: string): Promise<Outcome> {
    let outcome: Outcome = { kind: 'delivered', status: null }
    for (const body of bodies) {
      outcome = await postJson(context, channel, { url: alertsUrl(peer), body }, either)
      if (outcome.kind !== 'delivered') return outcome
    }
    stopTimers.push(startTimer(othersMs, () => enough.abort()))
    return outcome
  }

  const outcomes = await Promise.all(channel.settings.urls.map(postTo))
  for (const stopTimer of stopTimers) stopTimer()
  return sumUp(outcomes)
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
  const url = new URL(peer)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/api/v2/alerts`
  return url.href
}
