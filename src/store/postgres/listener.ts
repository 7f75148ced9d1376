/**
 * Listens on a channel of PostgreSQL, on a connection of its own: the pool may close or lend its connections at any
 * time. A query every few seconds checks the connection, because one whose other end is gone reports nothing. Notices
 * between two connections are lost: the caller reads what it may have missed (`onConnected`).
 */

import pg from 'pg'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import { socketOf } from './connection.ts'

export type Listener = ReturnType<typeof createListener>

export interface ListenerOptions {
  readonly url: string
  /** Shown in pg_stat_activity. */
  readonly name: string
  readonly channel: string
  /** Every user of the database may send notices: the payload is not trusted. */
  readonly onNotice: (payload: string) => void
  /** Notices arrive from now on: read once what is older. */
  readonly onConnected: () => void
  /** For the log; the listener reconnects by itself. */
  readonly onProblem: (error: unknown) => void
  readonly clock: Clock
  /** Between two checks of the connection. A check may take CHECK_MS. */
  readonly checkEveryMs?: number
}

const CONNECT_MS = 3_000
const CHECK_MS = 2_000
const RECONNECT = { firstMs: 100, maxMs: 5_000 }

export function createListener(options: ListenerOptions) {
  const { onProblem, clock } = options
  const stopping = new AbortController()
  let running: Promise<void> | undefined

  async function listen(): Promise<void> {
    let failures = 0
    while (!stopping.signal.aborted) {
      try {
        await listenOnce(options, stopping.signal, () => {
          failures = 0
        })
      } catch (error) {
        if (stopping.signal.aborted) return
        onProblem(error)
        await clock.sleep(backoffMs(failures, RECONNECT), stopping.signal)
        failures += 1
      }
    }
  }

  return {
    start(): void {
      running ??= listen()
    },
    /** Resolves when the connection is closed. No callback is called after that. */
    async stop(): Promise<void> {
      stopping.abort()
      await running
    },
  }
}

/** One connection, until it breaks (rejects) or `stopping` aborts. */
async function listenOnce(
  { url, name, channel, onNotice, onConnected, clock, checkEveryMs = 2_000 }: ListenerOptions,
  stopping: AbortSignal,
  works: () => void,
): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: `heartbeat-operator ${name}`,
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: CHECK_MS,
    keepAlive: true,
  })
  const ended = new AbortController()
  let problem: unknown
  const end = (error?: unknown) => {
    problem ??= error
    ended.abort()
    // end() would wait for the server, which may be gone.
    socketOf(client).destroy()
  }
  const onStop = () => end()
  client.on('error', end)
  client.on('end', () => end(new Error('Connection terminated: the database closed it')))
  client.on('notification', (notice) => {
    if (notice.channel === channel && !ended.signal.aborted) onNotice(notice.payload ?? '')
  })
  stopping.addEventListener('abort', onStop)
  try {
    await client.connect()
    await client.query(`listen ${channel}`)
    onConnected()
    while (!ended.signal.aborted) {
      await clock.sleep(checkEveryMs, ended.signal)
      if (ended.signal.aborted) break
      await client.query('select')
      works()
    }
    if (problem !== undefined) throw problem
  } finally {
    stopping.removeEventListener('abort', onStop)
    end()
  }
}
