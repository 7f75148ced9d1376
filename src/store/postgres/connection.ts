/**
 * What is done on one connection: statements, transactions, sessions of several users, rows as they come. database.ts hands
 * connections out, and closes those on which anything but a plain SQL error happened.
 */

import type { Socket } from 'node:net'
import pg from 'pg'
import { startTimer, yieldTurn } from '../../runtime/clock.ts'
import { isConnectionError, RollbackFailed } from './sqlstate.ts'

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

export interface Session {
  /** Begins `work` when nobody's transaction is in the way, and cuts the connection off when both take longer, so that it fails. */
  within<T>(budgetMs: number, work: (db: Queryable) => Promise<T>): Promise<T>
  /**
   * A transaction in two round trips: `begin` travels with the first statement of `work`, `commit` with its last ones, which
   * `work` hands back to be issued as `save`. Cut off after `budgetMs`, connection and all.
   */
  groupTransaction<T>(
    budgetMs: number,
    work: (tx: Queryable) => Promise<{ result: T; save: () => Promise<unknown> }>,
  ): Promise<T>
}

export async function runTransaction<T>(
  client: pg.PoolClient,
  answerMs: number | undefined,
  work: (tx: Queryable) => Promise<T>,
): Promise<T> {
  try {
    await issue(client, { text: 'begin' }, answerMs)
    const result = await work(queryableOn(client, answerMs))
    assertCommitted(await issue(client, { text: 'commit' }, answerMs))
    return result
  } catch (error) {
    await rollback(client, error, answerMs)
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
      issue(client, { text: 'begin' }).catch(() => {})
      return work(queryableOn(client))
    })
    const { result, save } = await working
    const [saved, committed] = inOneWrite(client, () => [save(), issue(client, { text: 'commit' })] as const)
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
function assertCommitted({ command }: Pick<pg.QueryResult, 'command'>): void {
  if (command !== 'COMMIT') throw new Error(`the transaction ended with ${command}`)
}

async function rollback(client: pg.PoolClient, cause: unknown, answerMs?: number): Promise<void> {
  // withClient closes the connection, and the server rolls back by itself.
  if (isConnectionError(cause)) return
  try {
    await issue(client, { text: 'rollback' }, answerMs)
  } catch {
    throw new RollbackFailed('rollback failed', { cause })
  }
}

/** `answerMs`: how long each statement may take; undefined where all of them together have a budget. */
export function queryableOn(client: pg.PoolClient, answerMs?: number): Queryable {
  return {
    async query<Row>(statement: string | Statement, values?: readonly unknown[]) {
      const { rows, rowCount } = await issue<Row>(
        client,
        typeof statement === 'string' ? { text: statement, values: values ?? [] } : { values: [], ...statement },
        answerMs,
      )
      return { rows, rowCount: rowCount ?? 0 }
    },
    async queryColumns(statement) {
      const { rows } = await issue<unknown[]>(client, statement, answerMs, 'array')
      return rows
    },
  }
}

/**
 * By pg's callback and without its timer where there is a budget: with its promise, or a timer, each statement keeps the next one's objects
 * alive, and the garbage collector carries a tenth of all that was allocated from one generation to the next (docs/benchmarks.md).
 */
function issue<Row = unknown>(
  client: pg.PoolClient,
  statement: Statement,
  answerMs?: number,
  rowMode?: 'array',
): Promise<Pick<pg.QueryResult, 'command' | 'rowCount'> & { rows: Row[] }> {
  return new Promise((resolve, reject) => {
    const query = {
      ...statement,
      rowMode,
      query_timeout: answerMs,
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
  /** Of somebody, on the wire; resolves when it has ended, however it did. */
  let transaction: Promise<void> | undefined
  /** What it ended with, if it took the connection with it, or nobody knows whether it still is open. */
  let broken: { readonly error: unknown } | undefined
  async function whenFree<T>(use: () => Promise<T>): Promise<T> {
    while (transaction !== undefined) await transaction
    if (broken !== undefined) throw broken.error
    return use()
  }
  function holdWire<T>(running: Promise<T>): Promise<T> {
    const clear = (error?: unknown) => {
      transaction = undefined
      if (isConnectionError(error)) broken = { error }
    }
    transaction = running.then(() => clear(), clear)
    return running
  }
  const plain = queryableOn(client)
  const outside: Queryable = {
    query: (statement, values) => whenFree(() => plain.query(statement, values)),
    queryColumns: (statement) => whenFree(() => plain.queryColumns(statement)),
  }
  return {
    within: (budgetMs, work) => runWithin(client, budgetMs, () => whenFree(() => work(outside))),
    groupTransaction: (budgetMs, work) =>
      runWithin(client, budgetMs, () => whenFree(() => holdWire(runGroupTransaction(client, work)))),
  }
}

/** One turn of the event loop reads what the kernel has, up to 2 MB: without a rest that is a turn of many milliseconds. */
const ROWS_A_TURN = 2_000

export async function streamRows(
  client: pg.PoolClient,
  statement: Statement,
  answerMs: number | undefined,
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
    Object.assign(query, {
      query_timeout: answerMs,
      callback: (error: Error | null) => (error === null ? resolve() : reject(error)),
    })
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
export function socketOf(client: pg.PoolClient): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream
}
