/** What becomes of the check, its URL and its history when a HeartbeatCheck is deleted (design, section 6, "Deleting"). */

import { describe, expect, it } from 'vitest'
import { MAX_CLEANUP_MS } from '../../src/operator/resource/finalizer.ts'
import { eventually } from '../support/until.ts'
import { workIn } from '../support/workplace.ts'
import { aFinalizer } from './finalizer.ts'
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
    await t.place.event('back', 'Revived')
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

  it('gives it back to a resource of its name, with URL and history', async () => {
    const { status } = await t.place.makeReady('twice', retained)
    const url = await t.place.pingUrl('twice')
    await ping(url)
    await t.place.delete('twice')
    const { status: now, metadata } = await t.place.makeReady('twice', retained)
    expect(now).toMatchObject({ checkId: status!.checkId, slug: 'twice', state: 'up' })
    expect(await t.place.pingUrl('twice')).toBe(url)
    expect((await check(status!.checkId!)).body).toMatchObject({ managed_by: 'kubernetes' })
    await t.place.event('twice', 'Readopted')
    const secret = await t.place.find('secrets', 'twice-heartbeat')
    expect(secret?.metadata.ownerReferences?.[0]?.uid).toBe(metadata.uid)
    expect(secret?.metadata.annotations ?? {}).not.toHaveProperty('heartbeat-operator.io/adopt')
  })

  it('does not, once it was changed through the API, until the resource adopts it', async () => {
    const { status } = await t.place.makeReady('changed', retained)
    const id = status!.checkId!
    const url = await t.place.pingUrl('changed')
    await t.place.delete('changed')
    await t.app.call('PUT', `/checks/${id}`, { name: 'Ours now' })
    await t.place.apply('changed', retained)
    const message = await t.place.stalled('changed', 'RetainedCheckExists')
    expect(message).toContain(`heartbeat-operator.io/adopt-check-id: "${id}"`)
    expect(message).toContain(`DELETE /api/v1/checks/${id}`)
    expect(await t.place.pingUrl('changed')).toBe(url)
    expect((await check(id)).body).toMatchObject({ name: 'Ours now', managed_by: 'api' })
    await t.place.change('changed', { metadata: { annotations: { 'heartbeat-operator.io/adopt-check-id': id } } })
    expect((await t.place.ready('changed')).status?.checkId).toBe(id)
    expect(await t.place.pingUrl('changed')).toBe(url)
    expect(await ping(url)).toBe(200)
  })

  it('keeps the URL in its Secret: no other check is published there while the retained one lives', async () => {
    const { status } = await t.place.makeReady('keeper', retained)
    const url = await t.place.pingUrl('keeper')
    await t.place.delete('keeper')
    await t.place.apply('intruder', { periodSeconds: 60, publish: { name: 'keeper-heartbeat' } })
    const message = await t.place.stalled('intruder', 'TargetNotOwned')
    expect(message).toContain(`Secret keeper-heartbeat keeps the ping URL of the retained check ${status!.checkId}`)
    expect(await t.place.pingUrl('keeper')).toBe(url)
    await t.app.call('DELETE', `/checks/${status!.checkId}`)
    await t.place.ready('intruder')
    expect(await t.place.pingUrl('keeper')).not.toBe(url)
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

describe('REVIVAL=uid', () => {
  const NAMESPACE = 'owned-in-turn'
  const path = `/api/v1/namespaces/${NAMESPACE}`
  const openNamespace = async () => {
    await t.cluster.api('POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } })
    return workIn(t.cluster, NAMESPACE)
  }

  it('gives a check back in the same namespace, and not in another one of its name', async () => {
    await t.restart({ revival: 'uid' })
    const first = await openNamespace()
    const { status } = await first.makeReady('a')
    const url = await first.pingUrl('a')
    await first.delete('a')
    expect((await first.makeReady('a')).status?.checkId).toBe(status?.checkId)
    expect(await first.pingUrl('a')).toBe(url)
    await first.delete('a')
    await t.cluster.api('DELETE', path)

    const second = await openNamespace()
    expect((await second.makeReady('a')).status?.checkId).not.toBe(status?.checkId)
    expect(await second.pingUrl('a')).not.toBe(url)
    expect(await ping(url)).toBe(404)
    expect((await t.sql('select from tombstones where id = $1', status!.checkId)).rowCount).toBe(1)
    await t.restart()
  })
})

describe('the finalizer', () => {
  it('holds the resource while its check cannot be removed, for ten minutes at most, under any number of leaders', async () => {
    await t.place.makeReady('held')
    await t.operator().stop()
    await using finalizer = aFinalizer(t)
    const path = t.place.pathOf('held')
    await t.cluster.api('DELETE', path)
    await t.sql('alter table tombstones rename to gone')
    try {
      for (const afterMs of [-60_000, 0, MAX_CLEANUP_MS / 2, MAX_CLEANUP_MS - 1])
        await expect(finalizer.finalize('held', afterMs)).rejects.toThrow('tombstones')
      expect(finalizer.said).toEqual([])
      await finalizer.finalize('held', MAX_CLEANUP_MS)
    } finally {
      await t.sql('alter table gone rename to tombstones')
    }
    expect((await t.cluster.api('GET', path)).status).toBe(404)
    expect(finalizer.said).toEqual(['forced', 'Warning CleanupTimeout'])
    // The sweep of orphans collects what is left.
    await t.restart({ orphanMs: 0 })
    await eventually('the check is gone', async () => {
      const { rowCount } = await t.sql("select from checks where kubernetes_name = 'held'")
      return rowCount === 0
    })
  })

  it('needs no time of its own for what succeeds late: a check is retained although no operator ran for an hour', async () => {
    const { status } = await t.place.makeReady('slow', retained)
    await t.operator().stop()
    await t.cluster.api('DELETE', t.place.pathOf('slow'))
    await using finalizer = aFinalizer(t)
    await finalizer.finalize('slow', 3_600_000)
    expect(finalizer.said).toEqual([])
    expect((await check(status!.checkId!)).body).toMatchObject({ managed_by: 'api' })
    await t.restart()
  })
})
