/** What becomes of the check, its URL and its history when a HeartbeatCheck is deleted (design, section 6, "Deleting"). */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createClient } from '../../../src/kubernetes/client.ts'
import { findConnection } from '../../../src/kubernetes/connection.ts'
import { createFinalizer, MAX_CLEANUP_MS } from '../../../src/operator/finalize.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { cluster, waitFor } from '../../support/cluster.ts'
import {
  type OperatorAndApi,
  openWorkplace,
  startOperatorAndApi,
  type Workplace,
} from '../../support/operator-and-api.ts'

let running: OperatorAndApi
let place: Workplace
/** Its end takes ten seconds, in which the other tests run: so long Kubernetes waits before it looks again. */
let ending: Workplace

beforeAll(async () => {
  running = await startOperatorAndApi()
  place = await openWorkplace()
  ending = await openWorkplace()
  await Promise.all(['a', 'b', 'c'].map((name) => ending.makeReady(name)))
  await ending.makeReady('d', { ...retained, suspend: true })
  await cluster.api('DELETE', `/api/v1/namespaces/${ending.name}`)
})

afterAll(async () => {
  await place?.[Symbol.asyncDispose]()
  await running?.[Symbol.asyncDispose]()
})

const sql = (text: string, ...values: unknown[]) => running.app.database.query(text, values)
const ping = async (url: string) => (await fetch(url, { method: 'POST' })).status
const check = async (id: string) => running.app.call('GET', `/checks/${id}`)
const retained = { periodSeconds: 3_600, deletionPolicy: 'Retain' }

describe('a namespace that is being deleted', () => {
  it('takes nothing new, which tells publish.ts to stop and to tell nobody', async () => {
    const refused = await cluster.api('POST', `/api/v1/namespaces/${ending.name}/secrets`, {
      metadata: { name: 'late' },
    })
    expect(refused).toMatchObject({ status: 403, body: { details: { causes: [{ reason: 'NamespaceTerminating' }] } } })
  })
})

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
  it('holds the resource while its check cannot be removed, for ten minutes at most by our own clock', async () => {
    await place.makeReady('held')
    await running.operator().stop()
    const connection = await findConnection({ KUBECONFIG: cluster.kubeconfigPath }, { clock: systemClock })
    const client = createClient({ connection: connection!, clock: systemClock })
    const told: string[] = []
    let forced = 0
    // The API server, which dates the deletion, is an hour behind.
    let now = systemClock.now() + 3_600_000
    const finalize = createFinalizer({
      client,
      context: { database: running.app.database, clock: systemClock },
      cluster: 'default',
      recorder: { record: (_, { type, reason }) => told.push(`${type} ${reason}`) },
      now: () => now,
      onFinalizerForced: () => {
        forced += 1
      },
    })
    const path = `/apis/heartbeat-operator.io/v1alpha1/namespaces/${place.name}/heartbeatchecks/held`
    await cluster.api('DELETE', path)
    await sql('alter table tombstones rename to gone')
    try {
      const fails = async () => expect(finalize(await place.get('held'))).rejects.toThrow('tombstones')
      await fails()
      now += MAX_CLEANUP_MS - 1
      await fails()
      expect({ told, forced }).toEqual({ told: [], forced: 0 })
      now += 1
      await finalize(await place.get('held'))
    } finally {
      await sql('alter table gone rename to tombstones')
      await client.close()
    }
    expect((await cluster.api('GET', path)).status).toBe(404)
    expect({ told, forced }).toEqual({ told: ['Warning CleanupTimeout'], forced: 1 })
    // The sweep of orphans collects what is left.
    await running.restart({ orphanMs: 0 })
    await waitFor('the check is gone', async () => {
      const { rowCount } = await sql("select from checks where kubernetes_name = 'held'")
      return rowCount === 0
    })
  })
})

describe('a namespace that is deleted with our objects in it', () => {
  it('ends, and with it the checks that are not retained', async () => {
    const path = `/api/v1/namespaces/${ending.name}`
    await waitFor('the namespace is gone', async () => (await cluster.api('GET', path)).status === 404, 20_000)
    const { rows } = await sql("select slug, managed_by from checks where slug in ('a', 'b', 'c', 'd')")
    expect(rows).toEqual([{ slug: 'd', managed_by: 'api' }])
  })
})
