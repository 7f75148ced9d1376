/** What becomes of the check, its URL and its history when a HeartbeatCheck is deleted (design, section 6, "Deleting"). */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/runtime/clock.ts'
import { cluster, waitFor } from '../../support/cluster.ts'
import { startTestOperator } from '../../support/operator.ts'
import {
  type OperatorAndApi,
  openWorkplace,
  startOperatorAndApi,
  urlIn,
  type Workplace,
} from '../../support/operator-and-api.ts'

let running: OperatorAndApi
let place: Workplace

beforeAll(async () => {
  running = await startOperatorAndApi()
  place = await openWorkplace()
})

afterAll(async () => {
  await place?.[Symbol.asyncDispose]()
  await running?.[Symbol.asyncDispose]()
})

const sql = (text: string, ...values: unknown[]) => running.app.database.query(text, values)
const ping = async (url: string) => (await fetch(url, { method: 'POST' })).status
const check = async (id: string) => running.app.call('GET', `/checks/${id}`)
const retained = { periodSeconds: 3_600, deletionPolicy: 'Retain' }

describe('deletionPolicy Delete', () => {
  it('ends the check at once: its pings are unknown, its Secret is gone, nothing alerts', async () => {
    const { status } = await place.makeReady('ended')
    const url = await place.pingUrl('ended')
    expect(await ping(url)).toBe(200)
    await place.delete('ended')
    expect(await ping(url)).toBe(404)
    expect(await place.find('secrets', 'ended-heartbeat')).toBeNull()
    expect((await check(status!.checkId!)).status).toBe(404)
    expect((await sql('select from tombstones where id = $1', status!.checkId)).rowCount).toBe(1)
  })

  it('lets a resource of its name have everything back: id, URL and history', async () => {
    const { status } = await place.makeReady('back')
    const url = await place.pingUrl('back')
    await ping(url)
    await place.delete('back')
    const { status: now, metadata } = await place.makeReady('back', { schedule: '0 4 * * *' })
    expect(now).toMatchObject({ checkId: status!.checkId, slug: 'back', state: 'new' })
    expect(await place.pingUrl('back')).toBe(url)
    expect((await place.find('secrets', 'back-heartbeat'))?.metadata.ownerReferences?.[0]?.uid).toBe(metadata.uid)
    expect(await ping(url)).toBe(200)
    const { body } = await running.app.call('GET', `/checks/${now!.checkId}/pings`)
    expect(body.pings).toHaveLength(2)
    expect((await place.events('back')).map(({ reason }) => reason)).toContain('Revived')
  })

  it('does so for one that is created within a second, before anybody could have looked', async () => {
    const { status, metadata } = await place.makeReady('at-once')
    const url = await place.pingUrl('at-once')
    const path = `/apis/heartbeat-operator.io/v1alpha1/namespaces/${place.name}/heartbeatchecks`
    await cluster.api('DELETE', `${path}/at-once`)
    const manifest = { apiVersion: 'heartbeat-operator.io/v1alpha1', kind: 'HeartbeatCheck' }
    // The API server refuses it for as long as the old one is being deleted.
    const made = await waitFor('it is there again', async () => {
      const body = { ...manifest, metadata: { name: 'at-once' }, spec: { periodSeconds: 60 } }
      const answer = await cluster.api('POST', path, body)
      return answer.status === 201 && answer.body
    })
    expect(made.metadata.uid).not.toBe(metadata.uid)
    expect((await place.ready('at-once')).status?.checkId).toBe(status?.checkId)
    expect(await place.pingUrl('at-once')).toBe(url)
  })

  it('is the end of the namespace too, in its time, with our objects in it', async () => {
    await using other = await openWorkplace()
    await Promise.all(['a', 'b', 'c'].map((name) => other.makeReady(name)))
    await other.create('d', { periodSeconds: 60, suspend: true, ...retained })
    await other.ready('d')
    const { metadata } = (await cluster.api('GET', `/api/v1/namespaces/${other.name}`)).body
    expect(metadata.deletionTimestamp).toBeUndefined()
    await cluster.api('DELETE', `/api/v1/namespaces/${other.name}`)
    await waitFor(
      'the namespace is gone',
      async () => (await cluster.api('GET', `/api/v1/namespaces/${other.name}`)).status === 404,
      20_000,
    )
    const { rows } = await sql('select slug, managed_by from checks where slug in (select unnest($1::text[]))', [
      'a',
      'b',
      'c',
      'd',
    ])
    expect(rows).toEqual([{ slug: 'd', managed_by: 'api' }])
  })
})

describe('deletionPolicy Retain', () => {
  it('hands the check to the API, and leaves its URL where its job finds it', async () => {
    const { status } = await place.makeReady('kept', retained)
    const url = await place.pingUrl('kept')
    await place.delete('kept')
    expect(await place.pingUrl('kept')).toBe(url)
    const secret = await place.find('secrets', 'kept-heartbeat')
    expect(secret?.metadata.ownerReferences).toBeUndefined()
    expect(secret?.metadata.labels).toBeUndefined()
    expect(await ping(url)).toBe(200)
    expect((await check(status!.checkId!)).body).toMatchObject({ managed_by: 'api', status: 'up' })
    const renamed = await running.app.call('PUT', `/checks/${status!.checkId}`, { name: 'Ours now' })
    expect(renamed.body).toMatchObject({ name: 'Ours now' })
    await waitForPoll()
    expect((await check(status!.checkId!)).body).toMatchObject({ name: 'Ours now', managed_by: 'api' })
  })

  it('is no hindrance to a new resource of its name, which gets a check of its own', async () => {
    const { status } = await place.makeReady('twice', retained)
    const url = await place.pingUrl('twice')
    await place.delete('twice')
    const { status: now } = await place.makeReady('twice', retained)
    expect(now?.checkId).not.toBe(status?.checkId)
    expect(now?.slug).toBe('twice-2')
    expect(await place.pingUrl('twice')).not.toBe(url)
    expect((await check(status!.checkId!)).body).toMatchObject({ managed_by: 'api' })
    expect((await place.find('secrets', 'twice-heartbeat'))?.metadata.annotations ?? {}).not.toHaveProperty(
      'heartbeat-operator.io/adopt',
    )
  })

  it('is undone by a resource that adopts the check', async () => {
    const { status } = await place.makeReady('handed', retained)
    const url = await place.pingUrl('handed')
    await place.delete('handed')
    const metadata = { annotations: { 'heartbeat-operator.io/adopt-check-id': status!.checkId } }
    const { status: now } = await place.makeReady('handed', { periodSeconds: 60 }, metadata)
    expect(now).toMatchObject({ checkId: status!.checkId, slug: 'handed' })
    expect(await place.pingUrl('handed')).toBe(url)
  })

  /** Until somebody else's change, made later, has been seen. */
  async function waitForPoll(): Promise<void> {
    const { status } = await place.makeReady(`marker-${crypto.randomUUID().slice(0, 8)}`)
    await running.app.database.query(
      `update check_states set status = 3 where check_key = (select key from checks where id = $1)`,
      [status!.checkId],
    )
    await waitFor('the poll came round', async () => {
      const { items } = (
        await cluster.api('GET', `/apis/heartbeat-operator.io/v1alpha1/namespaces/${place.name}/heartbeatchecks`)
      ).body
      return items.some(
        (item: { status?: { checkId: string; state: string } }) =>
          item.status?.checkId === status!.checkId && item.status?.state === 'paused',
      )
    })
  }
})

describe('the finalizer', () => {
  it('holds the resource while the check cannot be removed, for ten minutes at most', async () => {
    await place.makeReady('held')
    await place.makeReady('control')
    await running.operator.stop()
    let skippedMs = 0
    const forced: string[] = []
    const clock = { now: () => systemClock.now() + skippedMs, sleep: systemClock.sleep }
    // The API server dates the deletion, and the clocks are an hour apart.
    skippedMs = 3_600_000
    await using operator = await startTestOperator({
      kubeconfig: running.kubeconfig,
      leaseNamespace: 'heartbeat-operator',
      testDatabase: running.testDatabase,
      changes: { pingUrl: () => running.app.pingUrl, pollMs: 300, resyncMs: 2_000, clock },
    })
    await sql('alter table tombstones rename to gone')
    try {
      const path = `/apis/heartbeat-operator.io/v1alpha1/namespaces/${place.name}/heartbeatchecks/held`
      await cluster.api('DELETE', path)
      const errors = async () => {
        const { values } = await operator.metrics.registry
          .getSingleMetric('controller_runtime_reconcile_errors_total')!
          .get()
        return values.reduce((sum, { value }) => sum + value, 0)
      }
      await waitFor('it was tried several times', async () => (await errors()) >= 3)
      expect((await cluster.api('GET', path)).status).toBe(200)
      skippedMs += 601_000
      await waitFor('it went', async () => (await cluster.api('GET', path)).status === 404)
      forced.push(
        ...(await waitFor('it is told', async () => {
          const told = (await place.events('held')).filter(({ reason }) => reason === 'CleanupTimeout')
          return told.length > 0 && told.map(({ type }) => type)
        })),
      )
      expect(forced).toEqual(['Warning'])
      expect(await operator.metrics.registry.metrics()).toContain('heartbeat_finalizers_forced_total 1')
    } finally {
      await sql('alter table gone rename to tombstones')
    }
    // What is left is collected by the sweep of orphans, once the resource was missing for its time.
    expect((await sql("select from checks where kubernetes_name = 'held'")).rowCount).toBe(1)
    await waitFor('the sweep has begun', async () =>
      (await operator.metrics.registry.metrics()).includes('heartbeat_orphans_total 0'),
    )
    expect(urlIn(await place.find('secrets', 'control-heartbeat'))).not.toBe('')
  })
})
