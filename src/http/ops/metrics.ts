/**
 * GET /metrics: the metrics of this process and, when this replica exports them, the series of all checks. These can be more than a hundred
 * megabytes, so they are written in pieces as the client reads, and one request at a time holds them in memory. A client that reads too slowly
 * is cut off, because others wait for it; Prometheus then counts a failed scrape, and never stores half of the checks.
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
  /** Calls `add` with each check, some even before an error. False: another replica exports them, or the database cannot be asked. */
  readonly readChecks: (add: (check: ExportedCheck) => void) => Promise<boolean>
  /** The metrics of this process, in whole lines. `dropped`: the number of checks that are left out. */
  readonly render: (exported: { readonly isActive: boolean; readonly dropped: number }) => Promise<string>
  /** An unexpected error, before or while the response is written. */
  readonly onFault: (error: unknown) => void
  /** How long a client may take to read the response. Default: the timeout that it sends, as Prometheus does. */
  readonly writeMs?: number
}

/** The default scrape timeout of Prometheus. */
const WRITE_MS = 10_000
const MAX_WRITE_MS = 60_000
/** Level 6 takes 4 times as long and saves a sixth. The high-water mark holds several pieces: a thread compresses one while the next is made. */
const GZIP = { level: 1, chunkSize: 65_536, writableHighWaterMark: 2_097_152 }

export function createMetricsHandler(source: MetricsSource): (ctx: Context) => Promise<void> {
  const { contentType } = source
  let last: Promise<unknown> = Promise.resolve()

  async function write({ req, res }: Context, isCompressed: boolean): Promise<void> {
    // The client may have left while it waited.
    if (res.destroyed) return
    const series = new CheckSeries()
    const isActive = await source.readChecks(series.add)
    const text = await source.render({ isActive, dropped: isActive ? series.dropped : 0 })
    const stopTimer = startTimer(source.writeMs ?? writeMsOf(req), () => res.destroy())
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
    const written = last.then(() => write(ctx, isCompressed))
    last = written.catch(() => {})
    await written
    // The response is complete: Koa must not write one.
    ctx.respond = false
  }
}

function writeMsOf({ headers }: IncomingMessage): number {
  const seconds = Number(headers['x-prometheus-scrape-timeout-seconds'])
  return seconds > 0 ? Math.min(seconds * 1_000, MAX_WRITE_MS) : WRITE_MS
}

async function* pieces(text: string, series: CheckSeries | null): AsyncGenerator<string> {
  yield text
  if (series !== null) yield* series.render()
}

/** Resolves when all is written, or the client is gone. */
async function send(res: ServerResponse, text: AsyncGenerator<string>, isCompressed: boolean): Promise<void> {
  try {
    await (isCompressed ? pipeline(text, createGzip(GZIP), res) : pipeline(text, res))
  } catch (error) {
    // The client went away, or was cut off for taking too long.
    if (!res.destroyed) throw error
  }
}
