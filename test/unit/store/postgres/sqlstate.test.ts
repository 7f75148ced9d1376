import pg from 'pg'
import { describe, expect, it } from 'vitest'
import { isConnectionError, isOutage } from '../../../../src/store/postgres/sqlstate.ts'

/** As the server says it; words like "FATAL" come in its language. */
function fromServer(code: string, severity = 'ERROR') {
  return Object.assign(new pg.DatabaseError('said the server', 12, 'error'), { code, severity })
}

describe('an error of the server', () => {
  it.each([
    ['57P01', 'admin_shutdown'],
    ['57P02', 'crash_shutdown'],
    ['57P05', 'idle_session_timeout'],
    ['25P03', 'idle_in_transaction_session_timeout'],
    ['25P04', 'transaction_timeout'],
  ])('%s (%s) ends its connection, which nobody may use again, and is an outage', (code) => {
    const error = fromServer(code, 'FATAL')
    expect({ isConnection: isConnectionError(error), isOutage: isOutage(error) }).toEqual({
      isConnection: true,
      isOutage: true,
    })
  })

  it.each([
    ['57014', 'query_canceled'],
    ['55P03', 'lock_not_available'],
    ['53100', 'disk_full'],
    ['40001', 'serialization_failure'],
    ['25006', 'read_only_sql_transaction'],
  ])('%s (%s) is an outage on a connection that is well', (code) => {
    const error = fromServer(code)
    expect({ isConnection: isConnectionError(error), isOutage: isOutage(error) }).toEqual({
      isConnection: false,
      isOutage: true,
    })
  })

  it.each([
    ['23505', 'unique_violation'],
    ['22P02', 'invalid_text_representation'],
    ['42P01', 'undefined_table'],
  ])('%s (%s) is the fault of the statement', (code) => {
    const error = fromServer(code)
    expect({ isConnection: isConnectionError(error), isOutage: isOutage(error) }).toEqual({
      isConnection: false,
      isOutage: false,
    })
  })
})
