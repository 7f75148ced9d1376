/** What both roles share. app.ts makes it once. */

import type { Config } from '../config/config.ts'
import { createConnectionGroups } from '../http/client-address.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Log } from '../runtime/log.ts'
import { createLoop, type Loop } from '../runtime/loop.ts'
import { createDatabase, type Database, type DatabaseOptions } from '../store/postgres/database.ts'
import type { DatabaseClock } from '../store/postgres/database-clock.ts'
import type { Metrics } from './metrics.ts'

export interface Base {
  readonly config: Config
  readonly databaseUrl: string
  readonly log: Log
  readonly metrics: Metrics
  /** The clock of this process. */
  readonly clock: Clock
  readonly databaseClock: DatabaseClock
  /** For everything except pings. */
  readonly database: Database
  readonly isStopping: () => boolean
  /** Runs `work`, and retries it for a while when the database is unavailable. */
  readonly whenAvailable: (work: () => Promise<void>, signal?: AbortSignal) => Promise<void>
}

/** A pool that is closed with `stack`. */
export function openDatabase(
  { databaseUrl, log }: Pick<Base, 'databaseUrl' | 'log'>,
  stack: AsyncDisposableStack,
  options: Omit<DatabaseOptions, 'url' | 'onConnectionError'>,
): Database {
  const onConnectionError = (error: Error) => log.warn({ error }, 'a database connection broke')
  return stack.adopt(createDatabase({ ...options, url: databaseUrl, onConnectionError }), (opened) => opened.close())
}

/** The limits of a port's connections, for createHttpServer; what is beyond them is counted. */
export function limitConnections({ config, metrics }: Pick<Base, 'config' | 'metrics'>, server: string) {
  return {
    maxConnections: config.maxConnections,
    groupOf: createConnectionGroups(config.trustedProxies),
    onConnectionDropped: () => metrics.connectionsDropped.inc({ server }),
  }
}

/** A background loop whose failures are counted, from zero on, and logged. `run` returns nothing: done. */
export function loopOf(
  { clock, metrics, log }: Pick<Base, 'clock' | 'metrics' | 'log'>,
  name: string,
  everyMs: number,
  run: (signal: AbortSignal) => Promise<'again' | 'done' | undefined> | Promise<void>,
): Loop {
  metrics.loopFailures.inc({ loop: name }, 0)
  return createLoop({
    everyMs,
    run: async (signal) => (await run(signal)) ?? 'done',
    clock,
    onError(error) {
      metrics.loopFailures.inc({ loop: name })
      log.warn({ error, loop: name }, 'a background loop failed; it runs again')
    },
  })
}
