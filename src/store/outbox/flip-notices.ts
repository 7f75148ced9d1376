/**
 * Listens for the flips of declared checks as they are committed (LISTEN; change-sets.ts sends the notices). It uses a connection of
 * its own: the pool may close or lend its connections at any time, and LISTEN ends with the connection.
 *
 * A query every few seconds checks the connection, because a connection whose other end is gone reports nothing. When it fails,
 * `onProblem` is called, and the next attempt follows after a growing wait. Notices in between are lost, so each connection begins
 * with `onConnected`, and the caller polls. stop() ends it at any point.
 */

import pg from 'pg'
import { backoffMs } from '../../runtime/backoff.ts'
import type { Clock } from '../../runtime/clock.ts'
import { FLIP_CHANNEL } from '../checks/change-sets.ts'
import type { Resource } from '../checks/checks.ts'
import { socketOf } from '../postgres/connection.ts'

export interface FlipListener {
  start(): void
  /** Resolves when the connection is closed. No callback is called after that. */
  stop(): Promise<void>
}

export interface FlipListenerOptions {
  readonly url: string
  /** Flips of other clusters are ignored. */
  readonly cluster: string
  readonly onFlip: (resource: Resource) => void
  /** Flips are reported from now on: poll once for earlier ones. */
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

export function listenForFlips(options: FlipListenerOptions): FlipListener {
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
    start() {
      running ??= listen()
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** One connection, until it breaks (rejects) or `stopping` aborts. */
async function listenOnce(
  { url, cluster, onFlip, onConnected, clock, checkEveryMs = 2_000 }: FlipListenerOptions,
  stopping: AbortSignal,
  works: () => void,
): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'heartbeat-operator flips',
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
  client.on('notification', ({ channel, payload }) => {
    const resource = channel === FLIP_CHANNEL && !ended.signal.aborted ? readNotice(payload) : null
    if (resource?.cluster === cluster) onFlip(resource)
  })
  stopping.addEventListener('abort', onStop)
  try {
    await client.connect()
    await client.query(`listen ${FLIP_CHANNEL}`)
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

/** Null for a notice that is not ours: every user of the database may send notices. */
function readNotice(payload: string | undefined): Resource | null {
  try {
    const parts: unknown = JSON.parse(payload ?? '')
    if (!Array.isArray(parts) || parts.length !== 3 || !parts.every((part) => typeof part === 'string')) return null
    const [cluster, namespace, name] = parts as [string, string, string]
    return { cluster, namespace, name }
  } catch {
    return null
  }
}
