/** pg pools. After a timeout or a broken socket a connection is closed: the state of its transaction is unknown. */

import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import pg from 'pg'
import { unavailable } from '../../domain/errors.ts'
import {
  type Queryable,
  queryableOn,
  readRows,
  runTransaction,
  type Session,
  type Statement,
  sessionOn,
  socketOf,
} from './connection.ts'
import { parseInstant } from './instants.ts'
import { CommitUnknown, isConnectionError, isOutage, isRetriable, RollbackFailed } from './sqlstate.ts'

export type { Queryable, Session, Statement } from './connection.ts'

export interface Database extends Queryable {
  /**
   * Runs `work` again when the transaction lost a race (40001, 40P01): `work` must have no effects outside the
   * transaction.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /** For results that are too large to hold. Yields to the event loop in between. Throws what `onRow` throws. */
  eachRow(statement: Statement, onRow: (columns: unknown[]) => void): Promise<void>
  /** One connection for a while, so that the next transaction can be sent as soon as the last one has committed. */
  session<T>(use: (session: Session) => Promise<T>): Promise<T>
  /** Whether its connections leave this machine without TLS. */
  isInClear(): Promise<boolean>
  connections(): { total: number; idle: number; waiting: number }
  close(): Promise<void>
}

export interface DatabaseOptions {
  readonly url: string
  /** Shown in pg_stat_activity. */
  readonly name: string
  readonly connections: number
  /** Plans statements without their parameters: for the ping path, whose arrays have any length. */
  readonly genericPlans?: boolean
  /**
   * Plans as if tables were large: for statements that look up single rows in tables that are empty now and large
   * later. A plan that was made for an empty table, or without statistics, reads the whole table, and is kept for long.
   */
  readonly looksUp?: boolean
  /**
   * Does not wait for the disk: a crash of PostgreSQL may lose the last commits, and nothing else. For work that can be
   * repeated.
   */
  readonly isForgetful?: boolean
  /** The timeout of a statement; default 3.5 s. */
  readonly statementMs?: number
  /** How long a statement waits for a lock; default 1.5 s. */
  readonly lockMs?: number
  /** No timeouts: for migrations, which may rewrite a table, or wait for those of another replica. */
  readonly patient?: boolean
  /**
   * Its abort closes all connections in use: a start that is to end must not wait for a lock, or for a server that
   * hangs.
   */
  readonly signal?: AbortSignal
  readonly onConnectionError?: (error: Error) => void
}

export const CONNECT_MS = 1_500
/**
 * The server's timeout comes first, so that the statement is cancelled. The client's timeout is for a server that
 * hangs.
 */
const STATEMENT_MS = 3_500
const TIMEOUT_MARGIN_MS = 500
const LOCK_MS = 1_500
const ATTEMPTS = 3
const serverTimeouts = (statementMs: number, lockMs: number) => ({
  statement_timeout: statementMs,
  lock_timeout: lockMs,
  idle_in_transaction_session_timeout: 5_000,
})

/**
 * Connects when it is first used. Its methods throw AppError `unavailable` when PostgreSQL cannot serve them now, and
 * PostgreSQL's error otherwise.
 */
export function createDatabase(options: DatabaseOptions): Database {
  const { url, name, connections, statementMs = STATEMENT_MS, lockMs = LOCK_MS } = options
  const { patient = false, onConnectionError } = options
  /** For statements without a budget. */
  const timeoutMs = patient ? undefined : statementMs + TIMEOUT_MARGIN_MS
  const pool = new pg.Pool({
    ...withOurOptions(url, settingsOf(options)),
    application_name: `heartbeat-operator ${name}`,
    max: connections,
    connectionTimeoutMillis: CONNECT_MS,
    ...(patient ? {} : serverTimeouts(statementMs, lockMs)),
    keepAlive: true,
    types: { getTypeParser },
    // A statement is sent before the response to the last one, so that a transaction takes two round trips. Not in
    // @types/pg yet.
    ...{ pipeline: true },
  })
  // The pool drops an idle connection that breaks; without a listener its error would end the process. During close()
  // it does not matter.
  pool.on('error', (error) => pool.ending || onConnectionError?.(error))

  // The pool listens only while a connection is idle. While it is opened or closed, its error would end the process.
  const clients = new Set<pg.PoolClient>()
  pool.on('connect', (client) => {
    client.on('error', () => {})
    clients.add(client)
  })
  pool.on('remove', (client) => clients.delete(client))

  async function withClient<T>(use: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    const { signal } = options
    let isBroken = false
    let client: pg.PoolClient | undefined
    const cut = () => client !== undefined && socketOf(client).destroy(new Error('Connection terminated: by a signal'))
    try {
      client = await pool.connect()
      signal?.addEventListener('abort', cut)
      if (signal?.aborted) cut()
      return await use(client)
    } catch (error) {
      isBroken = isConnectionError(error)
      const cause = error instanceof RollbackFailed || error instanceof CommitUnknown ? error.cause : error
      throw isOutage(cause) ? unavailable(cause) : cause
    } finally {
      signal?.removeEventListener('abort', cut)
      client?.release(isBroken)
    }
  }

  return {
    query: (statement, values) => withClient((client) => queryableOn(client, timeoutMs).query(statement, values)),
    queryColumns: (statement) => withClient((client) => queryableOn(client, timeoutMs).queryColumns(statement)),

    eachRow: (statement, onRow) =>
      withClient((client) => runTransaction(client, timeoutMs, (tx) => readRows(tx, statement, onRow))),

    async transaction(work) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await withClient((client) => runTransaction(client, timeoutMs, work))
        } catch (error) {
          const cause = error instanceof Error ? error.cause : undefined
          if (attempt >= ATTEMPTS || !isRetriable(cause)) throw error
        }
      }
    },

    session: (use) => withClient((client) => use(sessionOn(client))),

    isInClear: () => withClient(async (client) => isInClear(socketOf(client))),
    connections: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    async close() {
      await pool.end()
      // A server that hangs never closes its side, and the connections would keep this process alive.
      for (const client of clients) socketOf(client).unref()
    },
  }
}

/** A Unix socket has no remote address. */
export function isInClear(socket: Pick<Socket, 'remoteAddress'>): boolean {
  const address = socket.remoteAddress?.replace(/^::ffff:/, '')
  const isLocal = address === undefined || address === '::1' || address.startsWith('127.')
  return !isLocal && !(socket instanceof TLSSocket)
}

/** Without these, plans read along an index, in its order. */
const PLANS_OF_MANY_ROWS = ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin', 'sort'] as const

/** A setting of ours. Without it, what lies between has dropped all our settings: a pooler (migrate.ts). */
export const MARK = 'heartbeat_operator.settings'

/** Settings of PostgreSQL for each connection, as command-line options. */
function settingsOf({ genericPlans = false, looksUp = false, isForgetful = false }: DatabaseOptions): string {
  // Only statements that run for seconds gain from jit.
  const settings = ['-c TimeZone=UTC', '-c jit=off', `-c ${MARK}=on`]
  // With the length of the arrays known, the planner would hash them and scan all checks. A generic plan looks rows up.
  if (genericPlans) settings.push('-c plan_cache_mode=force_generic_plan')
  if (looksUp) for (const plan of PLANS_OF_MANY_ROWS) settings.push(`-c enable_${plan}=off`)
  if (isForgetful) settings.push('-c synchronous_commit=off')
  return settings.join(' ')
}

/** pg would replace our options by those of the URL. `parseInstant` depends on our time zone. */
function withOurOptions(url: string, own: string): { connectionString: string; options: string } {
  const parsed = new URL(url)
  const given = parsed.searchParams.get('options')
  parsed.searchParams.delete('options')
  return { connectionString: parsed.href, options: given === null ? own : `${given} ${own}` }
}

const { builtins } = pg.types
type Parser = (text: string) => unknown

/** Instants are milliseconds, with microseconds as the fraction. An int8 becomes a number: ours are far below 2^53. */
function getTypeParser(oid: number, format?: string): Parser {
  if (oid === builtins.TIMESTAMPTZ) return parseInstant
  if (oid === builtins.INT8) return Number
  return pg.types.getTypeParser(oid, format as 'text') as Parser
}
