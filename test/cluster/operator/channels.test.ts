/**
 * HeartbeatChannels on a real API server, with the rights and the policy of manifests/. The rules in detail:
 * test/operator/channels.test.ts; what they share with other resources: test/cluster/operator/declared.test.ts.
 */

import { expect, it } from 'vitest'
import { openChannelPlace, slack } from '../../operator/channel-place.ts'
import { cluster } from '../../support/cluster.ts'
import { startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/until.ts'
import { use, useEach } from '../../support/use.ts'
import { useInstalled } from './stage.ts'

const scene = useInstalled({}, { ALLOWED_TARGETS: '127.0.0.1/32' })
const receiver = use(startReceiver)
const place = useEach(() => openChannelPlace(scene))

it('a channel is Ready, and delivers', async () => {
  await place.putSecret('chat', `${receiver.url}/real`)
  await place.apply('ops', { events: ['check.down'], ...slack('chat') })
  await place.ready('ops')
  const { channelId } = await place.statusOf('ops')
  expect(await scene.app.call('POST', `/channels/${channelId}/test`)).toMatchObject({ status: 202 })
  await eventually('it arrives', () => receiver.requests.some(({ path }) => path === '/real'))
  await eventually('Delivering', async () => (await place.condition('ops', 'Delivering'))?.status === 'True')
  expect(await cluster.kubectl('-n', place.name, 'get', 'hbch', 'ops')).toMatch(
    /KIND\s+READY\s+DELIVERING[\s\S]*slack\s+True\s+True/,
  )
})

it('a resource that is created again keeps its channel, and a name alone does not', async () => {
  await place.putSecret('chat', `${receiver.url}/again`)
  await place.makeReady('ops', slack('chat'))
  const { channelId } = await place.statusOf('ops')
  await place.delete('ops')
  await place.makeReady('ops', { ntfy: { topic: 'ops' } })
  expect((await place.statusOf('ops')).channelId).toBe(channelId)
  const other = await openChannelPlace(scene)
  await other.makeReady('ops', { ntfy: { topic: 'ops' } })
  expect((await other.statusOf('ops')).channelId).not.toBe(channelId)
})
