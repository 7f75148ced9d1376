import { beforeEach, expect, it } from 'vitest'
import { createAuthenticate } from '../../../src/auth/authenticate.ts'
import { logInToDashboard, refresh } from '../../../src/auth/log-in.ts'
import { createFindDashboardCaller } from '../../../src/auth/sessions.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { listOwnSessions } from '../../../src/tenancy/me.ts'
import { HOUR } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { ADDRESS, EMAIL, PASSWORD, START, tokensOf, useOrganization } from './fixtures.ts'

const { test, clock, organization, context, enter } = useOrganization()
const addSession = (userId: string) => organization.addSession(userId)
const ann = useEach(() => organization.addUser(EMAIL, 'read'))
beforeEach(async () => {
  const bob = await organization.addUser('bob@example.com', 'read')
  await addSession(bob.id)
})

const attempt = { email: EMAIL, password: PASSWORD, address: ADDRESS }
const enterApi = (database?: Database) => enter({}, database)
const enterDashboard = (database?: Database) => logInToDashboard(context(database), attempt, null)
const isInApi = (accessToken: string) =>
  createAuthenticate(context(), tokensOf(clock))(`Bearer ${accessToken}`, ADDRESS).then(
    () => true,
    () => false,
  )
const isInDashboard = async (token: string) =>
  (await createFindDashboardCaller(context())(token, ADDRESS, false)) !== null
const addSessions = async (count: number) => {
  for (let place = 0; place < count; place += 1) await addSession(ann.id)
}
const countSessions = async () =>
  (await listOwnSessions(context(), ann.caller, { limit: 100, after: null })).rows.length

it('a user has at most 50 sessions, of both kinds together: the one that was unused for longest ends', async () => {
  clock.time = START - 2
  const api = await enterApi()
  clock.time = START - 1
  const dashboard = await enterDashboard()
  clock.time = START
  await addSessions(47)
  await enterApi()
  expect([await countSessions(), await isInApi(api.accessToken), await isInDashboard(dashboard)]).toEqual([
    50,
    true,
    true,
  ])

  await enterDashboard()
  expect([await countSessions(), await isInApi(api.accessToken), await isInDashboard(dashboard)]).toEqual([
    50,
    false,
    true,
  ])
  const { refreshToken } = api
  await expect(refresh(context(), tokensOf(clock), { refreshToken, address: ADDRESS })).rejects.toMatchObject({
    code: 'unauthenticated',
  })

  const latest = await enterApi()
  expect([await countSessions(), await isInDashboard(dashboard), await isInApi(latest.accessToken)]).toEqual([
    50,
    false,
    true,
  ])
  const { rows } = await test.database.query(`select from sessions where user_id <> $1`, [ann.id])
  expect(rows, 'of another user').toHaveLength(1)
})

it('a session that is renewed outlives one that is not', async () => {
  const first = await enterApi()
  await addSessions(49)
  clock.time = START + HOUR
  const renewed = await refresh(context(), tokensOf(clock), { refreshToken: first.refreshToken, address: ADDRESS })
  await enterApi()
  expect([await countSessions(), await isInApi(renewed.accessToken)]).toEqual([50, true])
})

it('a session that has expired gives way before those that have not', async () => {
  const first = await enterApi()
  clock.time = START + 1
  const idle = await enterDashboard()
  await addSessions(48)
  clock.time = START + 12 * HOUR + 1
  const renewed = await refresh(context(), tokensOf(clock), { refreshToken: first.refreshToken, address: ADDRESS })
  await test.database.query(`update sessions set last_used_at = created_at where kind = 'token'`)
  await enterApi()
  expect([await countSessions(), await isInApi(renewed.accessToken), await isInDashboard(idle)]).toEqual([
    50,
    true,
    false,
  ])
})

it('log-ins at the same time on two replicas leave 50 sessions, and each of theirs', async () => {
  await addSessions(49)
  clock.time = START + 1
  const other = createDatabase({ url: test.url, name: 'other', connections: 5 })
  const [api, dashboard] = await Promise.all([
    Promise.all(Array.from({ length: 6 }, (_, place) => enterApi(place % 2 === 0 ? other : test.database))),
    Promise.all(Array.from({ length: 6 }, (_, place) => enterDashboard(place % 2 === 0 ? test.database : other))),
  ])
  await other.close()
  expect(await countSessions()).toBe(50)
  expect(await Promise.all(api.map(({ accessToken }) => isInApi(accessToken)))).toEqual(Array(6).fill(true))
  expect(await Promise.all(dashboard.map((token) => isInDashboard(token)))).toEqual(Array(6).fill(true))
})
