/**
 * The only place that makes a pg pool; its settings belong to that pool and to nobody else.
 * A connection on which anything but a plain SQL error happened is closed, never handed out again: after a time-out or a
 * broken socket nobody can say what state its transaction is in.
 */

import pg from 'pg'
import { unavailable } from '../../domain/errors.ts'
import {
  type Queryable,
  queryableOn,
  runTransaction,
  type Session,
  type Statement,
  sessionOn,
  socketOf,
  streamRows,
} from './connection.ts'
import { isConnectionError, isOutage, isRetriable, RollbackFailed } from './sqlstate.ts'

export type { Queryable, Session, Statement } from './connection.ts'

export interface Database extends Queryable {
  /** All or nothing; run again by itself when it lost a race (40001, 40P01), so `work` must have no effect outside it. */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /**
   * Rows as arrays of columns, one by one as they arrive, for a result that nobody holds as a whole. Others get their turn in
   * between. What `onRow` throws fails the statement once its rows are through.
   */
  eachRow(statement: Statement, onRow: (columns: unknown[]) => void): Promise<void>
  /**
   * One connection for a while, so that the next transaction can go on the wire the moment the last one has committed. Several may use
   * it at a time: statements go out one behind the other, and none between those of somebody's `groupTransaction`.
   */
  session<T>(use: (session: Session) => Promise<T>): Promise<T>
  connections(): { total: number; idle: number; waiting: number }
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly url: string
  /** Shown in pg_stat_activity. */
  readonly name: string
  readonly connections: number
  /** Plan statements without regard to their parameters: for the ping path, which hands over arrays of any length. */
  readonly genericPlans?: boolean
  /**
   * Plan as if tables were large: for statements that look single rows up in tables that are empty one moment and full the next.
   * A plan that was made for the empty one, or without statistics, reads all of the full one, and lives long.
   */
  readonly looksUp?: boolean
  /**
   * Do not wait for the disk: what was committed in the last moments before PostgreSQL crashes may be lost, and nothing else. For work
   * that is done again when nobody remembers it.
   */
  readonly isForgetful?: boolean
  /** How long a statement may take; default 3.5 s. */
  readonly statementMs?: number
  /** No limits of time: for migrations, which may wait for another replica's and rewrite a table. */
  readonly patient?: boolean
  /** When it aborts, what runs is cut off, connection and all: a start that is to end must not wait for a lock, or for a server that hangs. */
  readonly signal?: AbortSignal
  readonly onConnectionError?: (error: Error) => void
}

const CONNECT_MS = 1_500
/** The server gives up on a statement first, so that it is really cancelled; the client's own limit is for a server that hangs. */
const STATEMENT_MS = 3_500
const ANSWER_MARGIN_MS = 500
const LOCK_MS = 1_500
const ATTEMPTS = 3
const limitsOfTime = (statementMs: number) => ({
  statement_timeout: statementMs,
  lock_timeout: LOCK_MS,
  idle_in_transaction_session_timeout: 5_000,
})

export function createDatabase(options: DatabaseOptions): Database {
  const { url, name, connections, statementMs = STATEMENT_MS, patient = false, signal, onConnectionError } = options
  /** Of a statement whose caller has no budget of its own. */
  const answerMs = patient ? undefined : statementMs + ANSWER_MARGIN_MS
  const pool = new pg.Pool({
    ...withOurOptions(url, settingsOf(options)),
    application_name: `heartbeat-operator ${name}`,
    max: connections,
    connectionTimeoutMillis: CONNECT_MS,
    ...(patient ? {} : limitsOfTime(statementMs)),
    keepAlive: true,
    types: { getTypeParser },
    // Statements go out without awaiting the one before, so that a transaction takes two round trips. Not in @types/pg yet.
    ...{ pipeline: true },
  })
  // An idle connection that breaks is dropped by the pool; without a listener its error would end the process.
  // One that breaks while it is being closed concerns nobody.
  pool.on('error', (error) => pool.ending || onConnectionError?.(error))

  // The pool listens while a connection is idle. While it is lent its statement tells the error; while it is opened or
  // closed nobody would listen, and an error to which nobody listens ends the process.
  const clients = new Set<pg.PoolClient>()
  pool.on('connect', (client) => {
    client.on('error', () => {})
    clients.add(client)
  })
  pool.on('remove', (client) => clients.delete(client))

  async function withClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    let isBroken = false
    let client: pg.PoolClient | undefined
    const cut = () => client !== undefined && socketOf(client).destroy(new Error('Connection terminated: stopping'))
    try {
      client = await pool.connect()
      signal?.addEventListener('abort', cut)
      if (signal?.aborted) cut()
      return await use(client)
    } catch (error) {
      isBroken = isConnectionError(error)
      const cause = error instanceof RollbackFailed ? error.cause : error
      throw isOutage(cause) ? unavailable(cause) : cause
    } finally {
      signal?.removeEventListener('abort', cut)
      client?.release(isBroken)
    }
  }

  return {
    query: (statement, values) => withClient((client) => queryableOn(client, answerMs).query(statement, values)),
    queryColumns: (statement) => withClient((client) => queryableOn(client, answerMs).queryColumns(statement)),

    eachRow: (statement, onRow) => withClient((client) => streamRows(client, statement, answerMs, onRow)),

    async transaction(work) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await withClient((client) => runTransaction(client, answerMs, work))
        } catch (error) {
          const cause = error instanceof Error ? error.cause : undefined
          if (attempt >= ATTEMPTS || !isRetriable(cause)) throw error
        }
      }
    },

    session: (use) => withClient((client) => use(sessionOn(client))),

    connections: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    async close() {
      await pool.end()
      // They have said goodbye. A server that hangs never answers that, and its connections would keep this process alive.
      for (const client of clients) socketOf(client).unref()
    },
  }
}

/** What remains is to walk along an index, in its order. */
const WAYS_OF_MANY_ROWS = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'sort'] as const

/** PostgreSQL's settings of a session, as command-line options. */
function settingsOf({ genericPlans = false, looksUp = false, isForgetful = false }: DatabaseOptions): string {
  const settings = [
    '-c TimeZone=UTC',
    // It pays for statements that run for seconds, and ours must not.
    '-c jit=off',
  ]
  // Knowing the length of its arrays the planner would hash them and scan all checks; the generic plan looks rows up.
  if (genericPlans) settings.push('-c plan_cache_mode=force_generic_plan')
  if (looksUp) for (const way of WAYS_OF_MANY_ROWS) settings.push(`-c enable_${way}=off`)
  if (isForgetful) settings.push('-c synchronous_commit=off')
  return settings.join(' ')
}

/** pg would let the URL's own `options` replace ours, and the session's zone is what `parseInstant` stands on. */
function withOurOptions(url: string, ours: string): { connectionString: string; options: string } {
  const parsed = new URL(url)
  const theirs = parsed.searchParams.get('options')
  parsed.searchParams.delete('options')
  return { connectionString: parsed.href, options: theirs === null ? ours : `${theirs} ${ours}` }
}

const { builtins } = pg.types
type Parser = (text: string) => unknown

/** Instants are milliseconds (with the microseconds as their fraction), counts are numbers: ours stay far below 2^53. */
function getTypeParser(oid: number, format?: string): Parser {
  if (oid === builtins.TIMESTAMPTZ) return parseInstant
  if (oid === builtins.INT8) return Number
  return pg.types.getTypeParser(oid, format as 'text') as Parser
}

/** Reads `2026-11-21 13:38:11.123456+00`, the only form that a session in UTC prints for our era; seven for each ping. */
export function parseInstant(text: string): number {
  const year = twoDigits(text, 0) * 100 + twoDigits(text, 2)
  const minute = Date.UTC(year, twoDigits(text, 5) - 1, twoDigits(text, 8), twoDigits(text, 11), twoDigits(text, 14))
  let us = twoDigits(text, 17) * 1_000_000
  // Trailing zeros are left out: each digit is worth a tenth of the one before it.
  for (let at = 20, worth = 100_000; worth >= 1; at += 1, worth /= 10) {
    const digit = text.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9) || text.charCodeAt(19) !== 46 /* . */) break
    us += digit * worth
  }
  return minute + us / 1_000
}

function twoDigits(text: string, at: number): number {
  return (text.charCodeAt(at) - 48) * 10 + text.charCodeAt(at + 1) - 48
}
