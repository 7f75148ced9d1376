/** Unknown API keys, cookies and refresh tokens: what strangers send leaves the connections to others. */

import { beforeEach, describe, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { logIn, logInToDashboard, refresh } from '../../../src/auth/log-in.ts'
import { createFindDashboardCaller } from '../../../src/auth/sessions.ts'
import { AppError } from '../../../src/domain/errors.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { createApiKey } from '../../../src/tenancy/api-keys.ts'
import { createTestDatabase, PATIENT_MS } from '../../support/database.ts'
import { LOW_COST } from '../../support/passwords.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import { anOrganization, manualClock, PASSWORD, tokensOf } from './fixtures.ts'

const ADDRESS = '192.0.2.1'
const ATTEMPT = { email: 'ann@example.com', password: PASSWORD, address: ADDRESS }
/** One credential is being looked up, and 10,000 wait. */
const MOST = 10_001

/** Of the requests, with eight connections. */
let database: Database
let organization: Awaited<ReturnType<typeof anOrganization>>
const clock = manualClock()

const test = use(createTestDatabase)
beforeEach(async () => {
  await test.clear()
  organization = await anOrganization(test.database)
  await organization.addUser(ATTEMPT.email)
  database = createDatabase({ url: test.url, name: 'strangers', connections: 8, statementMs: PATIENT_MS })
  // The pool waits for a connection for a limited time, and 10,000 requests keep this process busy.
  await eventually('the database is reached', async () => (await database.query('select')).rowCount === 1)
  return () => database.close()
})

const context = (of: Database) => ({ database: of, clock, passwordCost: LOW_COST })

interface Kind {
  readonly name: string
  /** The form of a credential: what is between the prefix and the suffix has this length. */
  readonly prefix: string
  readonly length: number
  readonly suffix?: string
  readonly makeKnown: () => Promise<string>
  /** For a credential that is unknown: null, or AppError `unauthenticated`. */
  readonly createFind: () => (credential: string) => Promise<unknown>
}

const KINDS: Kind[] = [
  {
    name: 'API keys',
    prefix: 'hbk_',
    length: 8,
    suffix: `_${'x'.repeat(40)}`,
    async makeKnown() {
      const { key } = await createApiKey(context(test.database), organization.caller, { name: 'ci', scope: 'read' })
      return key
    },
    createFind() {
      const authenticate = createAuthenticate(context(database), tokensOf(clock))
      return (key) => authenticate(`Bearer ${key}`, ADDRESS)
    },
  },
  {
    name: 'cookies',
    prefix: '',
    length: 43,
    makeKnown: () => logInToDashboard(context(test.database), ATTEMPT, null),
    createFind() {
      const find = createFindDashboardCaller(context(database))
      return (cookie) => find(cookie, ADDRESS)
    },
  },
  {
    name: 'refresh tokens',
    prefix: 'hbr_',
    length: 43,
    makeKnown: async () => (await logIn(context(test.database), tokensOf(clock), ATTEMPT)).refreshToken,
    createFind: () => (refreshToken) => refresh(context(database), tokensOf(clock), { refreshToken, address: ADDRESS }),
  },
]

describe.each(KINDS)('unknown $name', ({ prefix, length, suffix = '', makeKnown, createFind }) => {
  const strangers = (count: number) =>
    Array.from({ length: count }, (_, place) => `${prefix}${String(place).padStart(length, 'x')}${suffix}`)

  it('at the same time take one connection', async () => {
    const find = createFind()
    const outcomes = await Promise.all(strangers(100).map((credential) => outcomeOf(find(credential))))
    expect(new Set(outcomes)).toEqual(new Set(['unknown']))
    expect(database.connections().total).toBe(1)
  })

  it('wait up to 10,000, with a known credential behind them that is served; one more gets 503', async () => {
    const known = await makeKnown()
    const find = createFind()
    const waiting = [...strangers(MOST - 1), known].map((credential) => outcomeOf(find(credential)))
    expect(await outcomeOf(find(known))).toBe('unavailable, Retry-After 5 s')
    const outcomes = await Promise.all(waiting)
    expect(outcomes.indexOf('known')).toBe(MOST - 1)
    expect(new Set(outcomes.slice(0, -1))).toEqual(new Set(['unknown']))
  })
})

async function outcomeOf(finding: Promise<unknown>): Promise<string> {
  try {
    return (await finding) === null ? 'unknown' : 'known'
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error.code === 'unauthenticated' ? 'unknown' : `${error.code}, Retry-After ${error.retryAfterSeconds} s`
  }
}
