/** What becomes of the check, its URL and its history when a HeartbeatCheck is deleted (design, section 6, "Deleting"). */

import { describe, expect, it } from 'vitest'
import { createFinalizer, MAX_CLEANUP_MS } from '../../src/operator/finalize.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { clientOf } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

const t = useScene()

const ping = async (url: string) => (await fetch(url, { method: 'POST' })).status
const check = async (id: string) => t.app.call('GET', `/checks/${id}`)
const retained = { periodSeconds: 3_600, deletionPolicy: 'Retain' }

describe('deletionPolicy Delete', () => {
  it('ends the check at once: its pings are unknown, its Secret is gone, nothing alerts', async () => {
    const { status } = await t.place.makeReady('ended')
    const url = await t.place.pingUrl('ended')
    expect(await ping(url)).toBe(200)
    await t.place.delete('ended')
    expect(await ping(url)).toBe(404)
    expect(await t.place.find('secrets', 'ended-heartbeat')).toBeNull()
    expect((await check(status!.checkId!)).status).toBe(404)
    expect((await t.sql('select from tombstones where id = $1', status!.checkId)).rowCount).toBe(1)
  })

  it('lets a resource of its name have everything back: id, URL and history', async () => {
    const { status } = await t.place.makeReady('back')
    const url = await t.place.pingUrl('back')
    await ping(url)
    await t.place.delete('back')
    const { status: now, metadata } = await t.place.makeReady('back', { schedule: '0 4 * * *' })
    expect(now).toMatchObject({ checkId: status!.checkId, slug: 'back', state: 'new' })
    expect(await t.place.pingUrl('back')).toBe(url)
    expect((await t.place.find('secrets', 'back-heartbeat'))?.metadata.ownerReferences?.[0]?.uid).toBe(metadata.uid)
    expect(await ping(url)).toBe(200)
    const { body } = await t.app.call('GET', `/checks/${now!.checkId}/pings`)
    expect(body.pings).toHaveLength(2)
    expect((await t.place.events('back')).map(({ reason }) => reason)).toContain('Revived')
  })

  it('does so for one that is created as soon as the API server lets it', async () => {
    const { status, metadata } = await t.place.makeReady('at-once')
    const url = await t.place.pingUrl('at-once')
    await t.cluster.api('DELETE', t.place.pathOf('at-once'))
    // The API server rejects it while the old one is being deleted.
    const made = await eventually('it is there again', async () => {
      const body = { metadata: { name: 'at-once' }, spec: { periodSeconds: 60 } }
      const response = await t.cluster.api('POST', t.place.pathOf('').slice(0, -1), body)
      return response.status === 201 && response.body
    })
    expect(made.metadata.uid).not.toBe(metadata.uid)
    expect((await t.place.ready('at-once')).status?.checkId).toBe(status?.checkId)
    expect(await t.place.pingUrl('at-once')).toBe(url)
  })
})

describe('deletionPolicy Retain', () => {
  it('hands the check to the API, and leaves its URL where its job finds it', async () => {
    const { status } = await t.place.makeReady('kept', retained)
    const url = await t.place.pingUrl('kept')
    await t.place.delete('kept')
    expect(await t.place.pingUrl('kept')).toBe(url)
    const secret = await t.place.find('secrets', 'kept-heartbeat')
    expect(secret?.metadata.ownerReferences).toBeUndefined()
    expect(secret?.metadata.labels).toBeUndefined()
    expect(await ping(url)).toBe(200)
    expect((await check(status!.checkId!)).body).toMatchObject({ managed_by: 'api', status: 'up' })
    const renamed = await t.app.call('PUT', `/checks/${status!.checkId}`, { name: 'Ours now' })
    expect(renamed.body).toMatchObject({ name: 'Ours now' })
    await waitForPoll()
    expect((await check(status!.checkId!)).body).toMatchObject({ name: 'Ours now', managed_by: 'api' })
  })

  it('is no hindrance to a new resource of its name, which gets a check of its own', async () => {
    const { status } = await t.place.makeReady('twice', retained)
    const url = await t.place.pingUrl('twice')
    await t.place.delete('twice')
    const { status: now } = await t.place.makeReady('twice', retained)
    expect(now?.checkId).not.toBe(status?.checkId)
    expect(now?.slug).toBe('twice-2')
    expect(await t.place.pingUrl('twice')).not.toBe(url)
    expect((await check(status!.checkId!)).body).toMatchObject({ managed_by: 'api' })
    expect((await t.place.find('secrets', 'twice-heartbeat'))?.metadata.annotations ?? {}).not.toHaveProperty(
      'heartbeat-operator.io/adopt',
    )
  })

  it('is undone by a resource that adopts the check', async () => {
    const { status } = await t.place.makeReady('handed', retained)
    const url = await t.place.pingUrl('handed')
    await t.place.delete('handed')
    const metadata = { annotations: { 'heartbeat-operator.io/adopt-check-id': status!.checkId } }
    const { status: now } = await t.place.makeReady('handed', { periodSeconds: 60 }, metadata)
    expect(now).toMatchObject({ checkId: status!.checkId, slug: 'handed' })
    expect(await t.place.pingUrl('handed')).toBe(url)
  })

  /** Waits until the follower has polled: it has seen a later change of another check. */
  async function waitForPoll(): Promise<void> {
    const { status } = await t.place.makeReady('marker')
    await t.sql(
      'update check_states set status = 3 where check_key = (select key from checks where id = $1)',
      status!.checkId,
    )
    await t.place.inState('marker', 'paused')
  }
})

describe('the finalizer', () => {
  it('holds the resource while its check cannot be removed, for ten minutes at most by our own clock', async () => {
    await t.place.makeReady('held')
    await t.operator().stop()
    await using client = clientOf(t.cluster.connection)
    const told: string[] = []
    let forced = 0
    // The API server, which dates the deletion, is an hour behind.
    let now = systemClock.now() + 3_600_000
    const finalize = createFinalizer({
      client,
      context: { database: t.app.database, clock: systemClock },
      cluster: 'default',
      recorder: { record: (_, { type, reason }) => told.push(`${type} ${reason}`) },
      now: () => now,
      onFinalizerForced: () => {
        forced += 1
      },
    })
    const path = t.place.pathOf('held')
    await t.cluster.api('DELETE', path)
    await t.sql('alter table tombstones rename to gone')
    try {
      const fails = async () => expect(finalize(await t.place.get('held'))).rejects.toThrow('tombstones')
      await fails()
      now += MAX_CLEANUP_MS - 1
      await fails()
      expect({ told, forced }).toEqual({ told: [], forced: 0 })
      now += 1
      await finalize(await t.place.get('held'))
    } finally {
      await t.sql('alter table gone rename to tombstones')
    }
    expect((await t.cluster.api('GET', path)).status).toBe(404)
    expect({ told, forced }).toEqual({ told: ['Warning CleanupTimeout'], forced: 1 })
    // The sweep of orphans collects what is left.
    await t.restart({ orphanMs: 0 })
    await eventually('the check is gone', async () => {
      const { rowCount } = await t.sql("select from checks where kubernetes_name = 'held'")
      return rowCount === 0
    })
  })
})
