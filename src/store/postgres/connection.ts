/** What one connection does. database.ts owns the pool, and closes a connection after all but a plain SQL error. */

import type { Socket } from 'node:net'
import type pg from 'pg'
import { startTimer } from '../../runtime/clock.ts'
import { CommitUnknown, isConnectionError, RollbackFailed } from './sqlstate.ts'

export interface Statement {
  /** A named statement is parsed once for each connection. */
  readonly name?: string
  readonly text: string
  readonly values?: readonly unknown[]
}

/** Runs statements: the database itself, or an open transaction. Throws PostgreSQL's error. */
export interface Queryable {
  query<Row>(statement: string | Statement, values?: readonly unknown[]): Promise<{ rows: Row[]; rowCount: number }>
  /** Rows as arrays of columns, for hot statements. */
  queryColumns(statement: Statement): Promise<unknown[][]>
}

/** One connection, for one user at a time. */
export interface Session {
  /** Closes the connection when `work` takes longer than `budgetMs`, so that `work` fails. */
  within<T>(budgetMs: number, work: (db: Queryable) => Promise<T>): Promise<T>
  /**
   * A transaction in two round trips: `begin` travels with the first statements of `read`, `commit` with those that
   * `write` issues before its first await. What `write` has issued is committed even if it throws later, unless a
   * statement fails. Returns what `write` returned. Throws CommitUnknown when the connection breaks after `commit` was
   * sent. Closes the connection after `budgetMs`.
   */
  groupTransaction<Read, T>(
    budgetMs: number,
    read: (tx: Queryable) => Promise<Read>,
    write: (tx: Queryable, read: Read) => Promise<T>,
  ): Promise<T>
}

export async function runTransaction<T>(
  client: pg.PoolClient,
  timeoutMs: number | undefined,
  work: (tx: Queryable) => Promise<T>,
): Promise<T> {
  try {
    await issue(client, { text: 'begin' }, timeoutMs)
    const result = await work(queryableOn(client, timeoutMs))
    assertCommitted(await issue(client, { text: 'commit' }, timeoutMs))
    return result
  } catch (error) {
    await rollback(client, error, timeoutMs)
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

async function runGroupTransaction<Read, T>(
  client: pg.PoolClient,
  read: (tx: Queryable) => Promise<Read>,
  write: (tx: Queryable, read: Read) => Promise<T>,
): Promise<T> {
  const tx = queryableOn(client)
  let isCommitSent = false
  try {
    const found = await inOneWrite(client, () => {
      issue(client, { text: 'begin' }).catch(() => {})
      return read(tx)
    })
    isCommitSent = true
    const [written, committed] = inOneWrite(
      client,
      () => [write(tx, found), issue(client, { text: 'commit' })] as const,
    )
    committed.catch(() => {})
    const result = await written
    assertCommitted(await committed)
    return result
  } catch (error) {
    await rollback(client, error)
    throw isCommitSent && isConnectionError(error) ? new CommitUnknown(error) : error
  }
}

/** For the commit of a failed transaction PostgreSQL returns ROLLBACK, and no error. */
function assertCommitted({ command }: Pick<pg.QueryResult, 'command'>): void {
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`)
}

async function rollback(client: pg.PoolClient, cause: unknown, timeoutMs?: number): Promise<void> {
  // withClient closes the connection; then the server rolls back.
  if (isConnectionError(cause)) return
  try {
    await issue(client, { text: 'rollback' }, timeoutMs)
  } catch {
    throw new RollbackFailed('rollback failed', { cause })
  }
}

/** `timeoutMs`: for each statement; undefined where all of them together have a budget. */
export function queryableOn(client: pg.PoolClient, timeoutMs?: number): Queryable {
  return {
    async query<Row>(statement: string | Statement, values?: readonly unknown[]) {
      const { rows, rowCount } = await issue<Row>(
        client,
        typeof statement === 'string' ? { text: statement, values: values ?? [] } : { values: [], ...statement },
        timeoutMs,
      )
      return { rows, rowCount: rowCount ?? 0 }
    },
    async queryColumns(statement) {
      const { rows } = await issue<unknown[]>(client, statement, timeoutMs, 'array')
      return rows
    },
  }
}

/**
 * Uses pg's callback, and no timer where there is a budget: with pg's promise, or with a timer, each statement keeps
 * the objects of the next one alive, and a tenth of all allocations survives until a full garbage collection
 * (docs/internals/benchmarks.md).
 */
function issue<Row = unknown>(
  client: pg.PoolClient,
  statement: Statement,
  timeoutMs?: number,
  rowMode?: 'array',
): Promise<Pick<pg.QueryResult, 'command' | 'rowCount'> & { rows: Row[] }> {
  return new Promise((resolve, reject) => {
    const query = {
      ...statement,
      rowMode,
      query_timeout: timeoutMs,
      callback(error: Error | null, result: pg.QueryResult & { rows: Row[] }) {
        if (error === null) resolve(result)
        else reject(error)
      },
    }
    // Not in @types/pg: a configuration with its callback.
    client.query(query as unknown as pg.QueryConfig)
  })
}

export function sessionOn(client: pg.PoolClient): Session {
  return {
    within: (budgetMs, work) => runWithin(client, budgetMs, () => work(queryableOn(client))),
    groupTransaction: (budgetMs, read, write) =>
      runWithin(client, budgetMs, () => runGroupTransaction(client, read, write)),
  }
}

/** Rows that are read at once. */
const ROWS_AT_ONCE = 1_000

/** Calls `onRow` with the columns of each row. A cursor gives the rows, some at a time. */
export async function readRows(
  tx: Queryable,
  statement: Statement,
  onRow: (columns: unknown[]) => void,
): Promise<void> {
  await tx.query(`declare each_row no scroll cursor for ${statement.text}`, statement.values)
  for (let isMore = true; isMore; ) {
    const rows = await tx.queryColumns({ text: `fetch ${ROWS_AT_ONCE} from each_row` })
    for (const row of rows) onRow(row)
    isMore = rows.length === ROWS_AT_ONCE
  }
}

/**
 * Sends all statements that `issue` makes in one packet: each packet costs a system call here, and wakes the server up.
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

/** pg has no public API to cork its socket, or to close a connection without waiting for the server. */
export function socketOf(client: pg.ClientBase): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}
