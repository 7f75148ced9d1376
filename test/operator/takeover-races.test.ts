/** F1: a takeover while the previous owner works on the published object (design, section 6): what either one writes, the new owner's URL is left. */

import { describe, expect, it } from 'vitest'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import type { TestDatabase } from '../support/database.ts'
import type { SeenRequest } from '../support/fake-api-server.ts'
import type { TestOperator } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { conflicts, idOf, useTwoInstallations } from './two-installations.ts'

const { cluster, one, two, place, checkOf, ...installations } = useTwoInstallations()

/** The first one resyncs all the time, and the second one never. Each request names its installation. */
function start(testDatabase: TestDatabase, changes: Partial<OperatorOptions> = {}): Promise<TestOperator> {
  const name = testDatabase === one ? 'one' : 'two'
  const readCredentials = async () => ({ headers: { installation: name }, tls: {} })
  return installations.start(
    testDatabase,
    { resyncMs: name === 'one' ? 900 : 600_000, ...changes },
    { connection: { ...cluster.connection, readCredentials, renewCredentials: readCredentials } },
  )
}

const isOf = (name: 'one' | 'two', method: string, end: string) => (request: SeenRequest) =>
  request.headers.installation === name &&
  method.split(' ').includes(request.method) &&
  request.path.startsWith(`/api`) &&
  request.path.includes(place.name) &&
  request.path.endsWith(end)
const takeOver = async () => {
  await place.change('raced', { metadata: { annotations: { 'heartbeat-operator.io/take-over': await idOf(one) } } })
}
const secret = () => `/api/v1/namespaces/${place.name}/secrets/raced-heartbeat`
const isTaken = async () => {
  const { status } = await place.ready('raced')
  return status?.installation === (await idOf(two))
}

it('F1: the new owner has the resource before it publishes, so the previous one does not put its URL back', async () => {
  await using first = await start(one)
  await place.makeReady('raced')
  await using _second = await start(two)
  await place.event('raced', 'ManagedElsewhere')
  const claim = cluster.server.hold(isOf('two', 'PATCH PUT', '/raced/status'))
  await takeOver()
  await claim.arrived
  const reads = () => cluster.server.requests.filter(isOf('one', 'GET', '/raced-heartbeat')).length
  const before = reads()
  await eventually('the previous owner has seen the Secret', () => reads() > before)
  claim.release()
  await eventually('it is taken over', isTaken)
  await eventually('the previous owner has left it', async () => (await conflicts(first)) === 1)
  expect(await place.pingUrl('raced')).toMatch(/^http:\/\/two\//)
})

describe('F1: what the previous owner began before the takeover does not replace the URL of the new one', () => {
  it.each([
    ['a write of the Secret, which was edited', 'PATCH', '/raced-heartbeat', { data: { HEARTBEAT_URL: 'eA==' } }],
    ['a new Secret, as the former one was deleted', 'POST PATCH', 'secrets', null],
    ['a read of the Secret', 'GET', '/raced-heartbeat', undefined],
  ])('%s', async (_, method, end, edit) => {
    await using first = await start(one)
    const { status } = await place.makeReady('raced')
    await using _second = await start(two)
    await place.event('raced', 'ManagedElsewhere')
    const isApply = ({ method, headers }: SeenRequest) =>
      method !== 'PATCH' || headers['content-type'] === 'application/apply-patch+yaml'
    const isAny = (request: SeenRequest) =>
      (isOf('one', method, end)(request) || (edit === null && isOf('one', 'PATCH', '/raced-heartbeat')(request))) &&
      isApply(request)
    const late = cluster.server.hold(isAny)
    if (edit === null) await cluster.api('DELETE', secret())
    if (edit) await place.patch('secrets', 'raced-heartbeat', edit)
    await late.arrived
    await takeOver()
    await eventually('it is taken over', isTaken)
    const url = await place.pingUrl('raced')
    expect(url).toMatch(/^http:\/\/two\//)
    late.release()
    await eventually('the previous owner has left it', async () => (await conflicts(first)) === 1)
    expect(await place.pingUrl('raced')).toBe(url)
    await eventually('the previous owner ends its check', async () => {
      return String(await checkOf(one, 'raced')) === `tombstone ${status?.checkId}`
    })
  })
})

it('a takeover that cannot publish yet is one Event, and the previous owner keeps its check until then', async () => {
  await using first = await start(one)
  const { status } = await place.makeReady('raced')
  const url = await place.pingUrl('raced')
  await using _second = await start(two)
  await place.event('raced', 'ManagedElsewhere')
  const allow = cluster.server.disturb(isOf('two', 'PATCH', '/raced-heartbeat'), { status: 500 }, 1_000)
  await takeOver()
  const claimed = await eventually('it has a new owner', async () => {
    const object = await place.get('raced')
    return object.status?.installation === (await idOf(two)) && object
  })
  expect(conditionOf(claimed, 'Reconciling')?.message).toContain(`taken over from the installation ${await idOf(one)}`)
  expect(conditionOf(claimed, 'Published')?.status).toBe('False')
  await eventually('the previous owner has left it', async () => (await conflicts(first)) === 1)
  expect(await place.pingUrl('raced')).toBe(url)
  expect(await checkOf(one, 'raced')).toEqual([`check ${status?.checkId}`])
  expect((await place.events('raced')).filter(({ reason }) => reason === 'TakenOver')).toEqual([])
  allow()
  await place.ready('raced')
  expect(await place.pingUrl('raced')).toBe(url.replace('http://one/', 'http://two/'))
  const reasons = (await place.events('raced')).map(({ reason, note }) => ({ reason, note }))
  expect(reasons.filter(({ reason }) => reason === 'TakenOver')).toMatchObject([
    { note: expect.stringContaining('its history stays with the previous installation') },
  ])
  expect(reasons.filter(({ reason }) => reason === 'CheckLost')).toEqual([])
})

it('a takeover that is tried again says of the check what the first attempt did, though its spec changed meanwhile', async () => {
  await using _first = await start(one)
  await place.makeReady('raced')
  await using _second = await start(two)
  await place.event('raced', 'ManagedElsewhere')
  const allow = cluster.server.disturb(isOf('two', 'PATCH PUT', '/raced/status'), { status: 409 }, 1_000)
  await takeOver()
  await eventually('an attempt creates the check', async () => (await checkOf(two, 'raced')).length === 1)
  await place.change('raced', { spec: { graceSeconds: 301 } })
  await eventually('another attempt changes the check', async () => {
    const { rows } = await two.database.query(
      `select from check_states join checks on key = check_key where kubernetes_namespace = $1 and grace_seconds = 301`,
      [place.name],
    )
    return rows.length === 1
  })
  allow()
  expect((await place.event('raced', 'TakenOver')).note).toContain('the check is a new one')
  expect((await place.events('raced')).filter(({ reason }) => reason === 'TakenOver')).toHaveLength(1)
})
