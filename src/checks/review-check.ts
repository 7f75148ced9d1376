/** All that the page of a check says about it. Each statement reads a bounded number of rows. */

import type { Tenant } from '../domain/access.ts'
import { type Instant, isChange } from '../domain/check.ts'
import { LAST_ID } from '../domain/ids.ts'
import { type DurationSummary, findRuns, type PastRun, summarizeDurations } from '../domain/runs.ts'
import { measureUptime, type StatusSpan, statusSpans, type Uptime } from '../domain/uptime.ts'
import type { StoredCheck } from '../store/checks/checks.ts'
import type { Context } from '../store/context.ts'
import { type FlipRecord, listFlipRows } from '../store/history/flips.ts'
import { listNewestGaps } from '../store/history/gaps.ts'
import { type BodyEnd, findNewestBodyEnd, findPing, listNewestPings, type PingRow } from '../store/history/pings.ts'
import { getCheck } from './find-checks.ts'
import { addEnds, type PingWithEnd, TEXT_END_BYTES } from './find-history.ts'

export type { PingRow, PingWithEnd } from './find-history.ts'

const DAY_MS = 86_400_000
/** The windows of uptime. */
export const UPTIME_DAYS = [7, 30, 90] as const
const LONGEST_MS = 90 * DAY_MS

/** The most rows that are read of each kind. HISTORY_MAX_PINGS and HISTORY_MAX_FLIPS keep as many by default. */
const ROWS = { pings: 1_000, flips: 1_000, gaps: 1_000 } as const
/** Pings that one statement reads. */
const PIECE_PINGS = 500
/** Pings that are shown with their texts. */
export const SHOWN_PINGS = 50

/** What pruning keeps of each check. */
export interface Kept {
  readonly days: number
  readonly flips: number
}

export interface WindowUptime extends Uptime {
  readonly days: (typeof UPTIME_DAYS)[number]
  /** Where the window begins. */
  readonly from: Instant
}

export interface CheckReview {
  readonly check: StoredCheck
  readonly now: Instant
  /** The newest pings, newest first. */
  readonly pings: readonly PingWithEnd[]
  readonly hasOlderPings: boolean
  /** The ping that changed the status to what it is; null: none did, or it was pruned. */
  readonly cause: PingRow | null
  /** The newest text, with its ping. Null: no ping has a text. */
  readonly lastText: { readonly ping: PingRow; readonly text: BodyEnd } | null
  /** Newest first, of the newest pings. */
  readonly runs: readonly PastRun[]
  /** Of the runs that succeeded. */
  readonly durations: DurationSummary | null
  /** Newest first. */
  readonly flips: readonly FlipRecord[]
  /** Older flips may exist that were not read. */
  readonly hasOlderFlips: boolean
  /** Oldest first. */
  readonly spans: readonly StatusSpan[]
  readonly uptimes: readonly WindowUptime[]
}

/** `kept`: without it, nothing is known of the time before the oldest flip. Throws AppError `not_found` for an unknown, foreign or malformed id. */
export async function reviewCheck(
  context: Context,
  tenant: Tenant,
  checkId: string,
  kept: Kept | null = null,
): Promise<CheckReview> {
  const { database, clock } = context
  const asOf = clock.now()
  const check = await getCheck(context, tenant, checkId)
  const { key, state } = check
  const flips = await listFlipRows(database, key, { beforeId: null, since: null, until: null }, ROWS.flips)
  const rows = await readPingRows(context, key)
  const pings = await addEnds(database, key, rows.slice(0, SHOWN_PINGS))
  const gaps = await listNewestGaps(database, asOf - LONGEST_MS, ROWS.gaps)
  const now = clock.now()

  const causeId = flips.find(isChange)?.pingId ?? null
  // A pause drops the runs that pings report.
  const dropping = check.spec.jobArea === null ? flips.filter(({ reason }) => reason === 'paused') : []
  const pausedAt = dropping.map(({ at }) => at)
  const runs = findRuns({ pings: rows, runs: state.runs, asOf, pausedAt, now })
  const done = runs.filter(
    ({ outcome, durationMs }) => (outcome === 'success' || outcome === 'warn') && durationMs !== null,
  )
  const mostFlips = Math.min(ROWS.flips, kept?.flips ?? 0)
  const completeFrom =
    kept === null || flips.length >= mostFlips ? null : Math.max(check.createdAt, now - kept.days * DAY_MS)
  const spans = statusSpans({ flips, state, completeFrom }, now)
  // The pings of a spooled gap are recorded.
  const hiding = gaps.filter(({ isSpooled }) => !isSpooled)
  // Older gaps are not known, so that time is left out.
  const knownFrom = gaps.length < ROWS.gaps ? 0 : gaps[0]!.endedAt
  return {
    check,
    now,
    pings,
    hasOlderPings: rows.length > SHOWN_PINGS,
    cause: causeId === null ? null : await findRow(context, key, rows, causeId),
    lastText: await findLastText(context, key, rows),
    runs,
    durations: summarizeDurations(done.map(({ durationMs }) => durationMs!)),
    flips,
    hasOlderFlips: flips.length === ROWS.flips,
    spans,
    uptimes: UPTIME_DAYS.map((days) => {
      const from = now - days * DAY_MS
      return { days, from, ...measureUptime(spans, hiding, { from: Math.max(from, knownFrom), to: now }) }
    }),
  }
}

async function readPingRows({ database }: Context, key: number): Promise<PingRow[]> {
  const rows: PingRow[] = []
  while (rows.length < ROWS.pings) {
    const beforeId = rows.at(-1)?.id ?? LAST_ID
    const piece = await listNewestPings(database, key, { beforeId, limit: PIECE_PINGS })
    rows.push(...piece)
    if (piece.length < PIECE_PINGS) break
  }
  return rows
}

async function findRow({ database }: Context, key: number, rows: readonly PingRow[], id: string) {
  return rows.find((row) => row.id === id) ?? (await findPing(database, key, id))
}

async function findLastText(context: Context, key: number, rows: readonly PingRow[]) {
  const text = await findNewestBodyEnd(context.database, key, TEXT_END_BYTES)
  const ping = text === null ? null : await findRow(context, key, rows, text.pingId)
  return text === null || ping === null ? null : { ping, text }
}
