/**
 * The outbox (design, section 5): claims due deliveries, sends them, and writes the outcomes. Every replica runs one.
 * Attempts run beside the polls, so that a slow receiver delays no other. An attempt sends one delivery, or a digest.
 * When a process dies between a claim and its outcome, the claim expires, and the delivery is due again.
 */

import { openChannel } from '../channels/open-channel.ts'
import type { Sealer } from '../channels/seal.ts'
import { INSTALLATION_CHANNEL_ID, type OpenChannel } from '../domain/channel.ts'
import { DIGEST } from '../domain/digest.ts'
import { toStoredText } from '../domain/plain-text.ts'
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
import { findCrowds } from '../store/outbox/digests.ts'
import type { Database } from '../store/postgres/database.ts'
import { claimDigest, type Message } from './claims.ts'
import type { Outcome, Senders } from './outcome.ts'
import { createSlots } from './slots.ts'

export type AttemptResult = 'delivered' | 'retried' | 'failed'

export interface AttemptReport {
  readonly message: Message
  /** Deliveries of the message with this result: some of a digest can be given up while others are tried again. */
  readonly count: number
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
  /** The clock of the process. */
  readonly clock: Clock
  readonly random: () => number
  /** Called before each poll. Resolves when no ping is being stored, or after a short wait. */
  readonly yieldToPings: () => Promise<void>
  readonly onAttempt: (report: AttemptReport) => void
  /** A bug in a sender. */
  readonly onBug: (error: unknown) => void
  readonly timeoutMs?: number
  readonly maxRunning?: number
}

/** A channel as it was when its deliveries were claimed. */
interface ClaimedChannel {
  readonly row: ChannelRow
  /** An error: why its settings cannot be read, fit for a delivery's last_error. */
  readonly opened: OpenChannel | Error
}

const TIMEOUT_MS = 10_000
/** A sender that ignores its signal is abandoned after this share of the timeout. */
const OVERTIME = 0.1
/** An attempt begins only with this much of the claim left: after the claim, another replica may begin one. */
const CLAIM_MARGIN_MS = TIMEOUT_MS + 5_000
/** Attempts that run at the same time, over all channels. A channel without a running attempt gets one more. */
const MAX_RUNNING = 512
const POLL_MS = 250
/** After a poll with work: PostgreSQL has time for pings. */
const REST_MS = 20
/** A ping that arrives in between waits for two sends, not for all that were claimed. */
const SENDS_AT_ONCE = 2
const PACE_MS = 1
const ERROR_LENGTH = 500
/** How long a channel gets no digest from this replica after its receiver has refused one as a message. */
const SINGLY_MS = 10 * 60_000

export function createOutbox(options: OutboxOptions) {
  const { database, senders, sealer, installationUrls, now, clock, random, yieldToPings, onAttempt, onBug } = options
  const { timeoutMs = TIMEOUT_MS, maxRunning = MAX_RUNNING } = options
  const slots = createSlots()
  const running = new Set<Promise<void>>()
  /** Channels that get no digest, and until when. */
  const singly = new Map<string, number>()
  /** The deliveries of each message. */
  let ended: FinishedAttempt[][] = []
  let wake = () => {}
  let lastPollAt = clock.now()

  /** Returns whether there was work: there may be more. */
  async function poll(): Promise<boolean> {
    await yieldToPings()
    await writeEnded()
    const startedAt = now()
    const channels = await listDueChannels(database, startedAt)
    const left = Math.max(0, maxRunning - running.size)
    const share = Math.ceil(left / channels.length)
    const wanted = channels
      // A kind that only a newer version knows, and without its address the installation's channel, are left to other
      // replicas.
      .filter(({ id, kind }) => kind in senders && (id !== INSTALLATION_CHANNEL_ID || installationUrls.length > 0))
      // An idle channel always gets one slot, however many are held by receivers that do not respond.
      .map((row) => ({ row, free: Math.max(Math.min(slots.free(row.id), share), slots.isIdle(row.id) ? 1 : 0) }))
      .filter(({ free }) => free > 0)
    const worked = wanted.length === 0 ? 0 : await startWanted(wanted, startedAt)
    lastPollAt = clock.now()
    return worked > 0
  }

  /** Claims deliveries of these channels and starts their attempts. Returns how many were claimed or postponed. */
  async function startWanted(
    wanted: readonly { readonly row: ChannelRow; readonly free: number }[],
    startedAt: number,
  ): Promise<number> {
    const times = { now: startedAt, until: startedAt + CLAIM_MS }
    const byId = new Map(wanted.map(({ row }) => [row.id, { row, opened: open(row) }]))
    const able = wanted.filter(({ row }) => getsDigests(row)).map(({ row }) => row.id)
    const found = await findCrowds(database, able, startedAt)
    const crowds = new Map(found.map(({ channelId, isTurn }) => [channelId, isTurn]))
    // Of a crowd only tests are sent alone. A digest holds one of the free slots of its channel.
    const alone = wanted.map(({ row: { id }, free }) => {
      const tests = crowds.get(id) === true ? free - 1 : free
      return { channelId: id, tests, others: crowds.has(id) ? 0 : free }
    })
    const { claimed, count } = await claimDeliveries(database, alone, times)
    let worked = count
    for (const [index, delivery] of claimed.entries()) {
      start({ delivery }, byId.get(delivery.channelId)!, times.until)
      if (index % SENDS_AT_ONCE === SENDS_AT_ONCE - 1) await pause(PACE_MS)
    }
    for (const [channelId, isTurn] of crowds) {
      if (!isTurn) continue
      const { messages, count } = await claimDigest(database, channelId, times)
      for (const message of messages) start(message, byId.get(channelId)!, times.until)
      worked += count
    }
    return worked
  }

  function open(row: ChannelRow): OpenChannel | Error {
    try {
      return openChannel(row, sealer, installationUrls)
    } catch (error) {
      return error as Error
    }
  }

  const getsDigests = ({ id, kind }: ChannelRow) =>
    senders[kind].sendDigest !== undefined && (singly.get(id) ?? 0) <= now()

  async function writeEnded(): Promise<void> {
    while (ended.length > 0) {
      const writing = takeMessages(ended)
      await finishAttempts(database, writing.flat(), now())
      // Removed only after the write: after a failure the next poll writes them.
      ended = ended.slice(writing.length)
    }
  }

  function start(message: Message, channel: ClaimedChannel, until: number): void {
    slots.acquire(channel.row.id)
    const attempting = attempt(message, channel, until).finally(() => {
      running.delete(attempting)
      wake()
    })
    running.add(attempting)
  }

  async function attempt(message: Message, channel: ClaimedChannel, until: number): Promise<void> {
    if (now() > until - CLAIM_MARGIN_MS) return slots.release(channel.row.id, null)
    const startedAt = clock.now()
    const outcome = await send(message, channel)
    slots.release(channel.row.id, outcome.kind === 'rejected' ? null : outcome.kind === 'delivered')
    if ('digest' in message && outcome.kind === 'rejected' && outcome.isOfMessage) {
      for (const [id, end] of singly) if (end <= now()) singly.delete(id)
      singly.set(channel.row.id, now() + SINGLY_MS)
    }
    const ends = toEnds(message, outcome)
    ended = [...ended, ends]
    const ms = Math.round(clock.now() - startedAt)
    for (const [status, result] of RESULTS) {
      const [first, ...others] = ends.filter((end) => end.status === status)
      if (first === undefined) continue
      const { nextAttemptAt } = first
      onAttempt({ message, count: 1 + others.length, channel: channel.row, result, outcome, ms, nextAttemptAt })
    }
  }

  async function send(message: Message, { row, opened: channel }: ClaimedChannel): Promise<Outcome> {
    // The transaction of a flip may commit after the channel was muted, and have seen it before.
    if (row.muted && !('delivery' in message && message.delivery.type === 'channel.test'))
      return { kind: 'rejected', status: null, error: 'the channel was muted' }
    if (channel instanceof Error) return { kind: 'retry', status: null, error: channel.message }
    const sender = senders[row.kind]
    try {
      return await sendWithin((signal) =>
        'delivery' in message
          ? sender({ channel, event: message.delivery.event, checkKey: message.delivery.checkKey }, signal)
          : sender.sendDigest!({ channel, digest: message.digest }, signal),
      )
    } catch (error) {
      onBug(error)
      return { kind: 'retry', status: null, error: 'an error in the service itself: its log has the details' }
    }
  }

  async function sendWithin(send: (signal: AbortSignal) => Promise<Outcome>): Promise<Outcome> {
    const timeout = new AbortController()
    const { promise: overtime, resolve } = Promise.withResolvers<Outcome>()
    const stopTimers = [
      startTimer(timeoutMs, () => timeout.abort()),
      startTimer(timeoutMs * (1 + OVERTIME), () =>
        resolve({ kind: 'retry', status: null, error: `no response within ${timeoutMs / 1_000} s` }),
      ),
    ]
    try {
      return await Promise.race([send(timeout.signal), overtime])
    } finally {
      for (const stopTimer of stopTimers) stopTimer()
    }
  }

  /** One chance for all of a digest: what fails together is due together, and sent together again. */
  function toEnds(message: Message, outcome: Outcome): FinishedAttempt[] {
    const times = { now: now(), random: random() }
    if ('delivery' in message) return [toEnd(message.delivery, outcome, times, null)]
    return message.deliveries.map((delivery) => toEnd(delivery, outcome, times, message.digest.id))
  }

  function toEnd(
    delivery: ClaimedDelivery,
    outcome: Outcome,
    times: { now: number; random: number },
    digestId: string | null,
  ): FinishedAttempt {
    const { status: lastStatus } = outcome
    const text = delivery.channelId === INSTALLATION_CHANNEL_ID ? textForTenant(outcome) : textOf(outcome)
    const isRefused = outcome.kind === 'retry' && outcome.isRefusal === true
    const refusedAt = isRefused ? (delivery.refusedAt ?? times.now) : null
    const shared = {
      delivery,
      lastStatus,
      lastError: text === undefined ? null : toStoredText(text, ERROR_LENGTH),
      refusedAt,
    }
    if (outcome.kind === 'delivered') return { ...shared, status: 'delivered', nextAttemptAt: null, digestId }
    // The wait is for receivers that are away. This one is there; the slots of the channel are the limit.
    if (outcome.kind === 'rejected' && outcome.isOfMessage && digestId !== null)
      return { ...shared, status: 'pending', nextAttemptAt: times.now, digestId: null }
    const { attempt, giveUpAt } = delivery
    const at =
      outcome.kind === 'rejected'
        ? null
        : nextAttemptAt({ ...times, attempt, giveUpAt, refusedAt, retryAfterMs: outcome.retryAfterMs ?? null })
    return { ...shared, status: at === null ? 'failed' : 'pending', nextAttemptAt: at, digestId: null }
  }

  return {
    /** One poll. `'again'`: poll again at once. */
    async run(signal: AbortSignal): Promise<'again' | 'done'> {
      if ((await poll()) || ended.length > 0) {
        await clock.sleep(REST_MS, signal)
        return 'again'
      }
      if (running.size === 0) return 'done'
      const waking = new AbortController()
      wake = () => waking.abort()
      await clock.sleep(POLL_MS, AbortSignal.any([signal, waking.signal]))
      return 'again'
    },
    /** When the last poll succeeded, or else when the outbox was created; by the clock of the process. */
    lastPollAt: () => lastPollAt,
    /** Claims no more, waits for the running attempts, and writes their outcomes. */
    async stop(): Promise<void> {
      await writeEnded()
      while (running.size > 0) {
        await Promise.race(running)
        await writeEnded()
      }
      // Attempts that ended during the last write.
      await writeEnded()
    },
  }
}

/** The first ones, as many as one statement writes in good time; a message is never divided. */
function takeMessages<T>(messages: readonly (readonly T[])[]): (readonly T[])[] {
  let length = 0
  const end = messages.findIndex((message, index) => {
    length += message.length
    return index > 0 && length > DIGEST.deliveries
  })
  return end === -1 ? [...messages] : messages.slice(0, end)
}

const RESULTS = [
  ['delivered', 'delivered'],
  ['pending', 'retried'],
  ['failed', 'failed'],
] as const

/** The text for a delivery's last_error and for the log: the error, or the note of a delivered one. */
export function textOf(outcome: Outcome): string | undefined {
  return outcome.kind === 'delivered' ? outcome.note : outcome.error
}

/** For the channel of the installation: its addresses are for the operator only, who has the log. */
function textForTenant(outcome: Outcome): string | undefined {
  if (outcome.kind !== 'delivered')
    return 'the Alertmanager of the installation did not accept it; the log of the service has the reason'
  return outcome.note === undefined ? undefined : 'the log of the service has a note about it'
}
