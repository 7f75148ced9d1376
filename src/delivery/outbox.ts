/**
 * The outbox at work (design, section 5): claims what is due, sends it, writes what became of it. Every replica runs one. Turns
 * follow each other; attempts run beside them, so that a slow receiver holds up nobody. What has ended since the last turn
 * is written in one statement with the next.
 *
 * At least once: whatever dies between a claim and the writing of its end, the claim runs out and the delivery is due again, with
 * the same event.
 */

import type { Sealer } from '../channels/seal.ts'
import { type ChannelKind, INSTALLATION_CHANNEL_ID, type OpenChannel } from '../domain/channel.ts'
import { CLAIM_MS, nextAttemptAt } from '../domain/retry.ts'
import { type Clock, pause, startTimer } from '../runtime/clock.ts'
import type { ChannelRow } from '../store/outbox/channels.ts'
import {
  type ClaimedDelivery,
  claimDeliveries,
  type FinishedAttempt,
  finishAttempts,
  listDueChannels,
} from '../store/outbox/deliveries.ts'
import type { Database } from '../store/postgres/database.ts'
import { openChannel } from './open-channel.ts'
import type { Attempt, Outcome, Send, Senders } from './outcome.ts'
import { createSlots } from './slots.ts'

export interface Outbox {
  /** One turn. `'again'`: more is to be done at once. */
  run(signal: AbortSignal): Promise<'again' | 'done'>
  /** When the last turn succeeded, or this was made; by the process's clock. */
  lastTurnAt(): number
  /** Takes nothing more, waits for the attempts on their way, and writes their ends. */
  stop(): Promise<void>
}

export type AttemptResult = 'delivered' | 'retried' | 'failed'

export interface AttemptReport {
  readonly delivery: ClaimedDelivery
  readonly channel: Pick<ChannelRow, 'id' | 'kind' | 'name'>
  readonly result: AttemptResult
  readonly outcome: Outcome
  readonly ms: number
  readonly nextAttemptAt: number | null
}

export interface OutboxOptions {
  readonly database: Database
  readonly senders: Senders
  readonly sealer: Sealer
  /** ALERTMANAGER_URL. */
  readonly installationUrls: readonly string[]
  /** The database's time. */
  readonly now: () => number
  /** This process's own. */
  readonly clock: Clock
  readonly random: () => number
  /** Awaited before each piece of work that others would feel, for a part of each turn at most. */
  readonly giveWay: () => Promise<void>
  readonly onAttempt: (report: AttemptReport) => void
  /** A fault of ours in a sender. */
  readonly onFault: (error: unknown) => void
  readonly timeoutMs?: number
  readonly mostOnTheWay?: number
}

/** A channel as it was when its deliveries were claimed. */
interface ClaimedChannel {
  readonly row: ChannelRow
  /** Its settings; throws an error with a message for people. */
  readonly open: () => OpenChannel
}

const TIMEOUT_MS = 10_000
/** A sender that does not end by its signal is left to itself after this. */
const OVERTIME_MS = 1_000
/** A claim that is nearly over is not acted upon: somebody else may be about to. */
const CLAIM_MARGIN_MS = TIMEOUT_MS + 5_000
/** On the way at once, over all channels; those that have nothing on the way get one place more. */
const MOST_ON_THE_WAY = 512
const POLL_MS = 250
const LONGEST_REST_MS = 100
/** A ping that comes meanwhile waits for two sends, not for all that were claimed. */
const SENT_AT_ONCE = 2
const PACE_MS = 1
/** In a turn, for the others: where they never rest, deliveries go on nearly as fast. */
const MOST_WAY_MS = 100
const ERROR_LENGTH = 500

export function createOutbox(options: OutboxOptions): Outbox {
  const { database, senders, sealer, installationUrls, now, clock, random, giveWay, onAttempt, onFault } = options
  const { timeoutMs = TIMEOUT_MS, mostOnTheWay = MOST_ON_THE_WAY } = options
  const slots = createSlots()
  const onTheWay = new Set<Promise<void>>()
  let ended: FinishedAttempt[] = []
  let wake = () => {}
  let lastTurnAt = clock.now()

  /** `workedMs`: how long it kept PostgreSQL at work. */
  async function turn(): Promise<{ isMore: boolean; workedMs: number }> {
    let wayMs = 0
    const makeWay = async () => {
      if (wayMs >= MOST_WAY_MS) return
      const askedAt = clock.now()
      await giveWay()
      wayMs += clock.now() - askedAt
    }
    await makeWay()
    const beganAt = clock.now()
    await writeEnded()
    const startedAt = now()
    const channels = await listDueChannels(database, startedAt)
    const left = Math.max(0, mostOnTheWay - onTheWay.size)
    const share = Math.ceil(left / channels.length)
    const wanted = channels
      // Others have its address.
      .filter(({ id }) => id !== INSTALLATION_CHANNEL_ID || installationUrls.length > 0)
      // One place is free for everybody, however many are taken by receivers that hang.
      .map(({ id }) => ({ channelId: id, free: Math.max(Math.min(slots.free(id), share), slots.isIdle(id) ? 1 : 0) }))
      .filter(({ free }) => free > 0)
    let isMore = false
    let workedMs = clock.now() - beganAt
    if (wanted.length > 0) {
      const until = startedAt + CLAIM_MS
      await makeWay()
      const { claimed, moved } = await claimDeliveries(database, wanted, { now: startedAt, until })
      workedMs = clock.now() - beganAt
      const byId = new Map(
        channels.map((row) => [row.id, { row, open: once(() => openChannel(row, sealer, installationUrls)) }]),
      )
      for (const [index, delivery] of claimed.entries()) {
        start(delivery, byId.get(delivery.channelId)!, until)
        if (index % SENT_AT_ONCE === SENT_AT_ONCE - 1) await pause(PACE_MS)
        await makeWay()
      }
      isMore = claimed.length + moved > 0
    }
    lastTurnAt = clock.now()
    return { isMore, workedMs }
  }

  async function writeEnded(): Promise<void> {
    if (ended.length === 0) return
    const writing = ended
    await finishAttempts(database, writing, now())
    // Only now: what could not be written is written with the next turn.
    ended = ended.slice(writing.length)
  }

  function start(delivery: ClaimedDelivery, channel: ClaimedChannel, until: number): void {
    slots.take(channel.row.id)
    const attempting = attempt(delivery, channel, until).finally(() => {
      onTheWay.delete(attempting)
      wake()
    })
    onTheWay.add(attempting)
  }

  async function attempt(delivery: ClaimedDelivery, channel: ClaimedChannel, until: number): Promise<void> {
    if (now() > until - CLAIM_MARGIN_MS) return slots.giveBack(channel.row.id, null)
    const startedAt = clock.now()
    const outcome = await send(delivery, channel)
    slots.giveBack(channel.row.id, outcome.kind === 'refused' ? null : outcome.kind === 'delivered')
    const end = toEnd(delivery, outcome)
    ended = [...ended, end]
    const result = RESULTS[end.status]
    const ms = Math.round(clock.now() - startedAt)
    onAttempt({ delivery, channel: channel.row, result, outcome, ms, nextAttemptAt: end.nextAttemptAt })
  }

  async function send({ event, checkKey }: ClaimedDelivery, { row, open }: ClaimedChannel): Promise<Outcome> {
    if (event === null) return { kind: 'refused', status: null, error: 'what it should say is no longer stored' }
    // A flip that saw the channel before it was muted may have committed after it.
    if (row.muted && event.type !== 'channel.test')
      return { kind: 'refused', status: null, error: 'the channel was muted' }
    let channel: OpenChannel
    try {
      channel = open()
    } catch (error) {
      return { kind: 'retry', status: null, error: (error as Error).message }
    }
    try {
      return await sendWithin(senders[row.kind] as Send, { channel, event, checkKey })
    } catch (error) {
      onFault(error)
      return { kind: 'retry', status: null, error: 'a fault of the service itself; its log says more' }
    }
  }

  async function sendWithin(sender: Send, attempt: Attempt<ChannelKind>): Promise<Outcome> {
    const over = new AbortController()
    const { promise: overtime, resolve } = Promise.withResolvers<Outcome>()
    const stopTimers = [
      startTimer(timeoutMs, () => over.abort()),
      startTimer(timeoutMs + OVERTIME_MS, () =>
        resolve({ kind: 'retry', status: null, error: `no answer within ${timeoutMs / 1_000} s` }),
      ),
    ]
    try {
      return await Promise.race([sender(attempt, over.signal), overtime])
    } finally {
      for (const stopTimer of stopTimers) stopTimer()
    }
  }

  function toEnd(delivery: ClaimedDelivery, outcome: Outcome): FinishedAttempt {
    const { status: lastStatus } = outcome
    const text = delivery.channelId === INSTALLATION_CHANNEL_ID ? tellTenant(outcome) : textOf(outcome)
    const shared = { delivery, lastStatus, lastError: text === undefined ? null : toStorable(text) }
    if (outcome.kind === 'delivered') return { ...shared, status: 'delivered', nextAttemptAt: null }
    const { attempt, giveUpAt } = delivery
    const at =
      outcome.kind === 'refused'
        ? null
        : nextAttemptAt({
            attempt,
            giveUpAt,
            now: now(),
            retryAfterMs: outcome.retryAfterMs ?? null,
            random: random(),
          })
    return { ...shared, status: at === null ? 'failed' : 'pending', nextAttemptAt: at }
  }

  return {
    async run(signal) {
      const { isMore, workedMs } = await turn()
      if (isMore || ended.length > 0) {
        await clock.sleep(restAfter(workedMs), signal)
        return 'again'
      }
      if (onTheWay.size === 0) return 'done'
      const waking = new AbortController()
      wake = () => waking.abort()
      await clock.sleep(POLL_MS, AbortSignal.any([signal, waking.signal]))
      return 'again'
    },
    lastTurnAt: () => lastTurnAt,
    async stop() {
      await writeEnded()
      while (onTheWay.size > 0) {
        await Promise.race(onTheWay)
        await writeEnded()
      }
      // What ended while the last ends were written.
      await writeEnded()
    },
  }
}

/** What it returned is returned again; what it threw is not remembered. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** Two thirds of the time belong to pings: a flood of deliveries is out a little later, and nobody's ping waits for it. */
function restAfter(workedMs: number): number {
  return Math.min(LONGEST_REST_MS, 2 * workedMs)
}

const RESULTS = { delivered: 'delivered', pending: 'retried', failed: 'failed' } as const

/** What is to be known about an attempt: why it failed, or what somebody should know although it did not. */
export function textOf(outcome: Outcome): string | undefined {
  return outcome.kind === 'delivered' ? outcome.note : outcome.error
}

/** Where the Alertmanager of the installation is, is for whoever runs the installation to know: he has the log. */
function tellTenant(outcome: Outcome): string | undefined {
  if (outcome.kind !== 'delivered')
    return 'the Alertmanager of the installation did not take it; the log of the service says why'
  return outcome.note === undefined ? undefined : 'the log of the service has a note about it'
}

/** PostgreSQL takes no NUL and no half of a surrogate pair. */
function toStorable(text: string): string {
  return text.slice(0, ERROR_LENGTH).replaceAll('\0', '').toWellFormed()
}
