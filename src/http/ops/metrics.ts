/**
 * GET /metrics: what this process counts, and after it, where this replica exports them, the series of all checks. They may be
 * more than a hundred megabytes of text, so they are written in pieces as the client takes them, and one request at a time has
 * them in memory; others wait for their turn. A client that does not take them is cut off, and would otherwise hold the next one
 * up; Prometheus then counts a failed scrape, and never half of the checks.
 */

import type { IncomingMessage, ServerResponse } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Context } from 'koa'
import type { ExportedCheck } from '../../checks/export-checks.ts'
import { startTimer } from '../../runtime/clock.ts'
import { CheckSeries } from './check-series.ts'

export interface MetricsSource {
  readonly contentType: string
  /**
   * Hands over each check; false when this replica does not export them, be it that another does or that nobody can tell. After
   * an error some may have been handed over.
   */
  readonly readChecks: (add: (check: ExportedCheck) => void) => Promise<boolean>
  /** What this process counts, in whole lines. `dropped`: checks left out. */
  readonly render: (exported: { readonly isActive: boolean; readonly dropped: number }) => Promise<string>
  /** A fault of ours, before an answer or in the middle of it. */
  readonly onFault: (error: unknown) => void
  /** How long a client may take to read it all; default: as long as it says, as Prometheus does. */
  readonly writeMs?: number
}

/** Prometheus' own patience, unless it is told otherwise and says so. */
const WRITE_MS = 10_000
const LONGEST_WRITE_MS = 60_000
/**
 * Level 6 takes four times as long and saves a sixth. The pieces that may wait let the next be made while one is compressed, in
 * another thread; with room for one the two would take turns.
 */
const GZIP = { level: 1, chunkSize: 65_536, writableHighWaterMark: 2_097_152 }

export function createMetricsAnswer(source: MetricsSource): (ctx: Context) => Promise<void> {
  const { contentType } = source
  let last: Promise<unknown> = Promise.resolve()

  async function write({ req, res }: Context, isCompressed: boolean): Promise<void> {
    // Whoever waited may have gone.
    if (res.destroyed) return
    const series = new CheckSeries()
    const isActive = await source.readChecks(series.add)
    const text = await source.render({ isActive, dropped: isActive ? series.dropped : 0 })
    const stopTimer = startTimer(source.writeMs ?? patienceOf(req), () => res.destroy())
    try {
      await send(res, pieces(text, isActive ? series : null), isCompressed)
    } finally {
      stopTimer()
    }
  }

  return async (ctx) => {
    const isCompressed = ctx.acceptsEncodings('gzip', 'identity') === 'gzip'
    ctx.status = 200
    ctx.set('Content-Type', contentType)
    ctx.vary('Accept-Encoding')
    if (isCompressed) ctx.set('Content-Encoding', 'gzip')
    if (ctx.method === 'HEAD') return
    const turn = last.then(() => write(ctx, isCompressed))
    last = turn.catch(() => {})
    await turn
    // Koa has nothing left to answer; it was written as it came.
    ctx.respond = false
  }
}

function patienceOf({ headers }: IncomingMessage): number {
  const seconds = Number(headers['x-prometheus-scrape-timeout-seconds'])
  return seconds > 0 ? Math.min(seconds * 1_000, LONGEST_WRITE_MS) : WRITE_MS
}

async function* pieces(text: string, series: CheckSeries | null): AsyncGenerator<string> {
  yield text
  if (series !== null) yield* series.render()
}

/** Resolves when all is written, or nobody wants it any more. */
async function send(res: ServerResponse, text: AsyncGenerator<string>, isCompressed: boolean): Promise<void> {
  try {
    await (isCompressed ? pipeline(text, createGzip(GZIP), res) : pipeline(text, res))
  } catch (error) {
    // The client went away, or was cut off for taking too long.
    if (!res.destroyed) throw error
  }
}
