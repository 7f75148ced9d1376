/** A HeartbeatChannel that passes from one installation to another: it always has a channel, and in the end one. */

import { beforeEach, expect, it } from 'vitest'
import { createSealer } from '../../src/channels/seal.ts'
import { saveSealingKey } from '../../src/store/leases/sealing-key.ts'
import type { TestDatabase } from '../support/database.ts'
import { eventually } from '../support/until.ts'
import { workIn } from '../support/workplace.ts'
import { idOf, useTwoInstallations } from './two-installations.ts'

const { cluster, one, two, place, ...installations } = useTwoInstallations()

/** Each request names its installation. */
function start(testDatabase: TestDatabase) {
  const readCredentials = async () => ({ headers: { installation: testDatabase === one ? 'one' : 'two' }, tls: {} })
  const connection = { ...cluster.connection, readCredentials, renewCredentials: readCredentials }
  return installations.start(testDatabase, {}, { connection })
}

const channelsOf = async ({ database }: TestDatabase) =>
  (await database.query<{ id: string }>('select id from channels')).rows.map(({ id }) => id)

beforeEach(async () => {
  for (const { database } of [one, two]) await saveSealingKey(database, createSealer(Buffer.alloc(32, 7)).publicKey)
})

it('a channel is the previous owner’s until the status shows that of the new one', async () => {
  const channels = workIn(cluster, place.name, 'HeartbeatChannel')
  await using _first = await start(one)
  await channels.makeReady('ops', { ntfy: { topic: 'ops' } })
  const [former] = await channelsOf(one)
  await using _second = await start(two)
  await channels.event('ops', 'ManagedElsewhere')
  expect(await channelsOf(two)).toEqual([])

  const claim = cluster.server.hold(
    ({ method, path, headers }) =>
      headers.installation === 'two' && method !== 'GET' && path.includes(place.name) && path.endsWith('/ops/status'),
  )
  await channels.change('ops', { metadata: { annotations: { 'heartbeat-operator.io/take-over': await idOf(one) } } })
  await claim.arrived
  const [own] = await channelsOf(two)
  expect(own).toBeDefined()
  const reads = () =>
    cluster.server.requests.filter(({ path, headers }) => headers.installation === 'one' && path.includes(place.name))
      .length
  const before = reads()
  await channels.change('ops', { metadata: { annotations: { 'heartbeat-operator.io/reconcile-requested-at': '1' } } })
  await eventually('the previous owner has reconciled it', () => reads() > before)
  expect(await channelsOf(one)).toEqual([former])

  claim.release()
  await eventually('the previous owner has none', async () => (await channelsOf(one)).length === 0)
  expect((await channels.get('ops')).status).toMatchObject({ installation: await idOf(two), channelId: own })
  await channels.event('ops', 'TakenOver')
  expect(await channelsOf(two)).toEqual([own])
})
