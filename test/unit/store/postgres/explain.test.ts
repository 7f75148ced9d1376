import { describe, expect, it } from 'vitest'
import { explainDatabaseError, mayPass } from '../../../../src/store/postgres/explain.ts'

const URL_OF_SERVICE = 'postgres://heartbeat:hunter2@postgres.shop:5432/heartbeat'

const failed = (code: string) => Object.assign(new Error(`getaddrinfo ${code} postgres.shop`), { code })
const refused = (code: string) => Object.assign(new Error('refused'), { code, severity: 'FATAL' })
/** As the database layer hands it on. */
const wrapped = (cause: Error) => new Error('the database is not available', { cause })

describe('a first connection that failed', () => {
  it.each([
    ['a name that nobody knows, and that may still come', failed('ENOTFOUND'), true, true],
    ['a name that nobody knows: a mistake', failed('ENOTFOUND'), false, false],
    ['a name server that does not answer', failed('EAI_AGAIN'), false, true],
    ['a server that starts up', refused('57P03'), false, true],
    ['a table that is locked', refused('55P03'), false, true],
    ['a standby', refused('25006'), true, false],
    ['a wrong password', refused('28P01'), true, false],
  ])('for %s', (_name, error, isNameAwaited, expected) => {
    expect(mayPass(error, isNameAwaited)).toBe(expected)
    expect(mayPass(wrapped(error), isNameAwaited)).toBe(expected)
  })

  it.each([
    [failed('ENOTFOUND'), 'there is no host postgres.shop: correct the name'],
    [
      refused('55P03'),
      'another session on postgres.shop:5432 keeps a table locked (a dump? a long query?): end it, then start again',
    ],
  ])('%s is explained in a line', (error, text) => {
    expect(explainDatabaseError(wrapped(error), URL_OF_SERVICE)).toBe(`DATABASE_URL: ${text}`)
  })
})
