/** A flip reaches the status and the Events of its HeartbeatCheck, soon and once (design, sections 6 and 7). */

import { describe, expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

// The poll is so rare that only a notice can be in time.
const t = useScene({ pollMs: 600_000, resyncMs: 600_000 })

async function ping(name: string, kind = ''): Promise<void> {
  const { status } = await fetch((await t.place.pingUrl(name)) + kind, { method: 'POST', body: 'disk full' })
  expect(status).toBe(200)
}

const KEY = '(select key from checks where slug = $1)'

/** Waits until the database holds that all flips are reported. */
async function reported(name: string): Promise<void> {
  await eventually('the flips are reported', async () => {
    const { rows } = await t.sql(
      `select from reported_flips r where r.check_key = ${KEY} and r.flip_id = (select id from flips where check_key = ${KEY} order by id desc limit 1)`,
      name,
    )
    return rows.length > 0
  })
}

/** Waits until the status and the Events say so. */
async function flip(name: string, cause: () => Promise<unknown>, state: string, reason: string): Promise<void> {
  await cause()
  await Promise.all([t.place.inState(name, state), t.place.event(name, reason)])
}

describe('a flip', () => {
  it('is in the status and in an Event soon after its notice, whatever made the check flip', async () => {
    await t.place.makeReady('flips')
    const overdue = `update check_states set expected_at = now() - interval '2 minutes', due_at = now() - interval '1 minute',
      wake_at = now() where check_key = (select key from checks where slug = 'flips')`
    const call = async (verb: string) =>
      t.app.call('PATCH', `/checks/${(await t.place.get('flips')).status!.checkId}/${verb}`)
    await flip('flips', () => ping('flips'), 'up', 'FirstSuccess')
    await flip('flips', () => ping('flips', '/fail'), 'down', 'Failed')
    await flip('flips', () => ping('flips'), 'up', 'Recovered')
    await flip('flips', () => t.sql(overdue), 'down', 'Missed')
    await flip('flips', () => call('pause'), 'paused', 'Suspended')
    await flip('flips', () => call('resume'), 'new', 'Resumed')
  })

  it('reads no published object: a resync does, a request, and a change of the resource', async () => {
    await t.place.makeReady('unread')
    const reads = () => {
      const of = ({ method, path }: { method: string; path: string }) =>
        method === 'GET' && path.endsWith(`/secrets/unread-heartbeat`)
      return t.cluster.server.requests.filter(of).length
    }
    const url = await t.place.pingUrl('unread')
    const before = reads()
    for (const [kind, state] of [
      ['', 'up'],
      ['/fail', 'down'],
      ['', 'up'],
    ] as const) {
      expect((await fetch(url + kind, { method: 'POST' })).status).toBe(200)
      await t.place.inState('unread', state)
    }
    expect(reads()).toBe(before)
    const annotations = { 'heartbeat-operator.io/reconcile-requested-at': 'now' }
    await t.place.change('unread', { metadata: { annotations } })
    await eventually('the request is handled', async () => {
      const { status } = await t.place.get('unread')
      return status?.lastHandledReconcileRequest === 'now'
    })
    expect(reads()).toBe(before + 1)
    const { metadata } = await t.place.change('unread', { spec: { graceSeconds: 77 } })
    await eventually('the change is in effect', async () => {
      const { status } = await t.place.get('unread')
      return status?.observedGeneration === metadata.generation
    })
    expect(reads()).toBe(before + 2)
  })

  it('has its Event although it came back within its second, unseen: the status is as before', async () => {
    await t.place.makeReady('unseen')
    await flip('unseen', () => ping('unseen'), 'up', 'FirstSuccess')
    await reported('unseen')
    await t.operator().stop()
    const { stateTime } = (await t.place.get('unseen')).status!
    await ping('unseen', '/fail')
    await ping('unseen')
    await t.sql(
      `update check_states set since = $2::timestamptz + interval '999 ms' where check_key = ${KEY}`,
      'unseen',
      stateTime,
    )
    await t.restart()
    await t.place.event('unseen', 'Recovered')
    await t.operator().stop()
    expect((await t.place.events('unseen')).map(({ reason }) => reason)).toEqual(
      expect.arrayContaining(['FirstSuccess', 'Failed', 'Recovered']),
    )
    expect((await t.place.get('unseen')).status).toMatchObject({ state: 'up', stateTime })
    expect(stateTime).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/)
    await t.restart()
  })
})
