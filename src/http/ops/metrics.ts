/**
 * GET /metrics: the metrics of this process and, when this replica exports them, the series of all checks, written in
 * pieces as the client reads. A client that reads nothing, or takes too long, is cut off: Prometheus then counts a
 * failed scrape, and stores no half of the checks.
 */

import type { IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Context } from 'koa'
import type { ExportedCheck } from '../../checks/export-checks.ts'
import { startTimer } from '../../runtime/clock.ts'
import { createPacer } from '../../runtime/limiter.ts'
import { SCRAPES, UNREAD_SCRAPE_MS } from '../limits.ts'
import { ClientLeft, writeBytes } from '../write.ts'
import { type CheckSeries, createCheckSeries } from './check-series.ts'

export interface MetricsSource {
  readonly contentType: string
  /** The names in the text of the labels that `readChecks` reads of each check. Default: none. */
  readonly labelNames?: readonly string[]
  /** Calls `add` with each check, some even before an error. False: another replica exports, or no database. */
  readonly readChecks: (add: (check: ExportedCheck) => void) => Promise<boolean>
  /** The metrics of this process, in whole lines. `dropped`: the number of checks that are left out. */
  readonly render: (exported: { readonly isActive: boolean; readonly dropped: number }) => Promise<string>
  /** An unexpected error, before or while the response is written. */
  readonly onFault: (error: unknown) => void
  /** How long a client may take to read the response. Default: the timeout that it sends, as Prometheus does. */
  readonly writeMs?: number
  /** How long a client may read nothing. For tests. */
  readonly idleMs?: number
}

/** The default scrape timeout of Prometheus. */
const WRITE_MS = 10_000
const MAX_WRITE_MS = 60_000
/** Level 6 takes 4 times as long and saves a sixth. A thread compresses a piece while the next one is made. */
const GZIP = { level: 1, chunkSize: 65_536, writableHighWaterMark: 2_097_152 }

export function createMetricsHandler(source: MetricsSource): (ctx: Context) => Promise<void> {
  const { contentType, idleMs = UNREAD_SCRAPE_MS } = source
  let scrapes = 0
  let reading: ReturnType<typeof read> | null = null
  // Of all scrapes together one piece is made in a turn of the event loop: pings come between.
  const pace = createPacer()

  async function read() {
    const series = createCheckSeries(source.labelNames)
    const isActive = await source.readChecks(series.add)
    const text = await source.render({ isActive, dropped: isActive ? series.dropped() : 0 })
    return { text, series: isActive ? series : null }
  }

  async function write({ req, res }: Context, isCompressed: boolean): Promise<void> {
    try {
      // Checks are read by one scrape at a time: the others wait for its result.
      reading ??= read().finally(() => {
        reading = null
      })
      const { text, series } = await reading
      const stopTimer = startTimer(source.writeMs ?? writeMsOf(req), () => res.destroy())
      const send = async (chunks: AsyncIterable<Buffer | string>) => {
        for await (const chunk of chunks) await writeBytes(res, Buffer.from(chunk as string), idleMs)
        res.end()
      }
      try {
        const lines = pieces(text, series, pace)
        await (isCompressed ? pipeline(lines, createGzip(GZIP), send) : send(lines))
      } finally {
        stopTimer()
      }
    } catch (error) {
      if (res.headersSent || error instanceof ClientLeft) res.destroy()
      if (!(error instanceof ClientLeft)) throw error
    }
  }

  return async (ctx) => {
    const isCompressed = ctx.acceptsEncodings('gzip', 'identity') === 'gzip'
    if (scrapes >= SCRAPES) {
      ctx.status = 503
      ctx.set('Retry-After', '1')
      ctx.body = `${scrapes} scrapes are being served: try again in a second\n`
      return
    }
    ctx.status = 200
    ctx.set('Content-Type', contentType)
    ctx.vary('Accept-Encoding')
    if (isCompressed) ctx.set('Content-Encoding', 'gzip')
    if (ctx.method === 'HEAD') return
    scrapes += 1
    ctx.res.on('error', () => {})
    try {
      await write(ctx, isCompressed)
    } finally {
      scrapes -= 1
    }
    // The response is complete: Koa must not write one.
    ctx.respond = false
  }
}

function writeMsOf({ headers }: IncomingMessage): number {
  const seconds = Number(headers['x-prometheus-scrape-timeout-seconds'])
  return seconds > 0 ? Math.min(seconds * 1_000, MAX_WRITE_MS) : WRITE_MS
}

async function* pieces(text: string, series: CheckSeries | null, pace: () => Promise<void>): AsyncGenerator<string> {
  yield text
  if (series !== null) yield* series.render(pace)
}
