import type { Queryable, Session, Statement } from '../../src/store/postgres/database.ts'

/** The same session, in which `run` stands before each statement of a budget: it may note it, let it run, or fail in its place. */
export function watchSession(
  session: Session,
  run: (statement: Statement, send: Queryable['queryColumns']) => Promise<unknown[][]>,
): Session {
  return {
    ...session,
    within: (budgetMs, work) =>
      session.within(budgetMs, (db) => work({ ...db, queryColumns: (statement) => run(statement, db.queryColumns) })),
  }
}
