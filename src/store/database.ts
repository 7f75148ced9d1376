/**
 * Connections and transactions. The only place that makes a pg pool; its settings belong to that pool and to nobody else.
 * A connection on which anything but a plain SQL error happened is closed, never handed out again: after a time-out or a
 * broken socket nobody can say what state its transaction is in.
 */

import type { Socket } from 'node:net'
import pg from 'pg'
import { unavailable } from '../domain/errors.ts'
import { startTimer, yieldTurn } from '../runtime/clock.ts'
import { isConnectionError, isOutage, isRetriable, RollbackFailed } from './sqlstate.ts'

export interface Statement {
  /** A named statement is planned once for a connection. */
  readonly name?: string
  readonly text: string
  readonly values?: readonly unknown[]
}

/** Whatever can run a statement: the database itself, or an open transaction. */
export interface Queryable {
  query<Row>(statement: string | Statement, values?: readonly unknown[]): Promise<{ rows: Row[]; rowCount: number }>
  /** Rows as arrays of columns, for hot statements. */
  queryColumns(statement: Statement): Promise<unknown[][]>
}

export interface Database extends Queryable {
  /** All or nothing; run again by itself when it lost a race (40001, 40P01), so `work` must have no effect outside it. */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>
  /**
   * Rows as arrays of columns, one by one as they arrive, for a result that nobody holds as a whole. Others get their turn in
   * between. What `onRow` throws fails the statement once its rows are through.
   */
  eachRow(statement: Statement, onRow: (columns: unknown[]) => void): Promise<void>
  /** One connection for a while, so that the next transaction can go on the wire the moment the last one has committed. */
  session<T>(use: (session: Session) => Promise<T>): Promise<T>
  connections(): { total: number; idle: number; waiting: number }
  close(): Promise<void>
}

export interface Session extends Queryable {
  /** Cuts the connection off when `work` takes longer, so that it fails. */
  within<T>(budgetMs: number, work: () => Promise<T>): Promise<T>
  /**
   * A transaction in two round trips: `begin` travels with the first statement of `work`, `commit` with its last ones, which
   * `work` hands back to be issued as `save`. Cut off after `budgetMs`, connection and all.
   */
  groupTransaction<T>(
    budgetMs: number,
    work: (tx: Queryable) => Promise<{ result: T; save: () => Promise<unknown> }>,
  ): Promise<T>
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
  query_timeout: statementMs + ANSWER_MARGIN_MS,
  lock_timeout: LOCK_MS,
  idle_in_transaction_session_timeout: 5_000,
})

export function createDatabase(options: DatabaseOptions): Database {
  const { url, name, connections, statementMs = STATEMENT_MS, patient = false, signal, onConnectionError } = options
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
    query: (statement, values) => withClient((client) => queryableOn(client).query(statement, values)),
    queryColumns: (statement) => withClient((client) => queryableOn(client).queryColumns(statement)),

    eachRow: (statement, onRow) => withClient((client) => streamRows(client, statement, onRow)),

    async transaction(work) {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await withClient((client) => runTransaction(client, work))
        } catch (error) {
          const cause = error instanceof Error ? error.cause : undefined
          if (attempt >= ATTEMPTS || !isRetriable(cause)) throw error
        }
      }
    },

    session: (use) =>
      withClient((client) =>
        use({
          ...queryableOn(client),
          within: (budgetMs, work) => runWithin(client, budgetMs, work),
          groupTransaction: (budgetMs, work) => runWithin(client, budgetMs, () => runGroupTransaction(client, work)),
        }),
      ),

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

async function runTransaction<T>(client: pg.PoolClient, work: (tx: Queryable) => Promise<T>): Promise<T> {
  try {
    await client.query('begin')
    const result = await work(queryableOn(client))
    assertCommitted(await client.query('commit'))
    return result
  } catch (error) {
    await rollback(client, error)
    throw error
  }
}

async function runWithin<T>(client: pg.PoolClient, budgetMs: number, work: () => Promise<T>): Promise<T> {
  const stopTimer = startTimer(budgetMs, () =>
    socketOf(client).destroy(new Error('Connection terminated: it took too long')),
  )
  try {
    return await work()
  } finally {
    stopTimer()
  }
}

async function runGroupTransaction<T>(
  client: pg.PoolClient,
  work: (tx: Queryable) => Promise<{ result: T; save: () => Promise<unknown> }>,
): Promise<T> {
  try {
    const working = inOneWrite(client, () => {
      client.query('begin').catch(() => {})
      return work(queryableOn(client))
    })
    const { result, save } = await working
    const [saved, committed] = inOneWrite(client, () => [save(), client.query('commit')] as const)
    committed.catch(() => {})
    await saved
    assertCommitted(await committed)
    return result
  } catch (error) {
    await rollback(client, error)
    throw error
  }
}

/** PostgreSQL answers the commit of a failed transaction with ROLLBACK and no error. */
function assertCommitted({ command }: pg.QueryResult): void {
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`)
}

async function rollback(client: pg.PoolClient, cause: unknown): Promise<void> {
  // withClient closes the connection, and the server rolls back by itself.
  if (isConnectionError(cause)) return
  try {
    await client.query('rollback')
  } catch {
    throw new RollbackFailed('rollback failed', { cause })
  }
}

function queryableOn(client: pg.PoolClient): Queryable {
  return {
    async query<Row>(statement: string | Statement, values?: readonly unknown[]) {
      const { rows, rowCount } = await client.query(
        typeof statement === 'string'
          ? { text: statement, values: [...(values ?? [])] }
          : { ...statement, values: [...(statement.values ?? [])] },
      )
      return { rows: rows as Row[], rowCount: rowCount ?? 0 }
    },
    async queryColumns(statement) {
      const { rows } = await client.query({ ...statement, values: statement.values as unknown[], rowMode: 'array' })
      return rows
    },
  }
}

/** One turn of the event loop reads what the kernel has, up to 2 MB: without a rest that is a turn of many milliseconds. */
const ROWS_A_TURN = 2_000

async function streamRows(
  client: pg.PoolClient,
  statement: Statement,
  onRow: (columns: unknown[]) => void,
): Promise<void> {
  const socket = socketOf(client)
  const config: pg.QueryArrayConfig = { ...statement, values: [...(statement.values ?? [])], rowMode: 'array' }
  const query = new pg.Query<unknown[]>(config)
  let failure: { readonly error: unknown } | undefined
  let count = 0
  query.on('row', (row, result) => {
    // pg keeps the rows of a query with a limit of time as well: each after its event.
    if (result !== undefined) result.rows.length = 0
    count += 1
    if (count % ROWS_A_TURN === 0) {
      socket.pause()
      void yieldTurn().then(() => socket.resume())
    }
    try {
      if (failure === undefined) onRow(row)
    } catch (error) {
      // It must not end up in the socket's handler, where nobody would catch it.
      failure = { error }
    }
  })
  await new Promise<void>((resolve, reject) => {
    // As pg's own promises do it: with a limit of time it emits neither `end` nor `error` for sure.
    Object.assign(query, { callback: (error: Error | null) => (error === null ? resolve() : reject(error)) })
    client.query(query)
  })
  if (failure !== undefined) throw failure.error
}

/**
 * What `issue` sends at once travels in one packet: each write of its own is a system call here, and wakes the server up there.
 */
function inOneWrite<T>(client: pg.PoolClient, issue: () => T): T {
  const socket = socketOf(client)
  socket.cork()
  try {
    return issue()
  } finally {
    socket.uncork()
  }
}

/** pg has no public way to hold its socket, nor to drop a connection without waiting for the server. */
function socketOf(client: pg.PoolClient): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
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
