/** A flip reaches the status and the Events of its HeartbeatCheck, soon and once (design, sections 6 and 7). */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cluster, waitFor } from '../../support/cluster.ts'
import {
  conditionOf,
  type OperatorAndApi,
  openWorkplace,
  startOperatorAndApi,
  type Workplace,
} from '../../support/operator-and-api.ts'

let running: OperatorAndApi
let place: Workplace

beforeAll(async () => {
  // So rarely that nothing but a notice can be in time.
  running = await startOperatorAndApi({ pollMs: 60_000, resyncMs: 600_000 })
  place = await openWorkplace()
})

afterAll(async () => {
  await place?.[Symbol.asyncDispose]()
  await running?.[Symbol.asyncDispose]()
})

const kubectl = (...args: string[]) => cluster.kubectl('-n', place.name, ...args)
const sql = (text: string, ...values: unknown[]) => running.app.database.query(text, values)

async function ping(name: string, kind = ''): Promise<void> {
  const { status } = await fetch((await place.pingUrl(name)) + kind, { method: 'POST', body: 'disk full' })
  expect(status).toBe(200)
}

/** Milliseconds until the status and the Events say so. */
async function measureFlip(name: string, cause: () => Promise<unknown>, state: string, reason: string) {
  await cause()
  const start = performance.now()
  const [statusMs, eventMs] = await Promise.all([
    waitFor(`the status says ${state}`, async () => (await place.get(name)).status?.state === state).then(
      () => performance.now() - start,
    ),
    waitFor(`an Event says ${reason}`, async () =>
      (await place.events(name)).some((told) => told.reason === reason),
    ).then(() => performance.now() - start),
  ])
  return { statusMs, eventMs }
}

describe('a flip', () => {
  it('is in the status and told as an Event within two seconds', async () => {
    await place.makeReady('flips')
    const overdue = `update check_states set expected_at = now() - interval '2 minutes', due_at = now() - interval '1 minute',
      wake_at = now() where check_key = (select key from checks where slug = 'flips')`
    const call = async (verb: string) =>
      running.app.call('PATCH', `/checks/${(await place.get('flips')).status!.checkId}/${verb}`)
    const steps = [
      [() => ping('flips'), 'up', 'FirstSuccess'],
      [() => ping('flips', '/fail'), 'down', 'Failed'],
      [() => ping('flips'), 'up', 'Recovered'],
      [() => sql(overdue), 'down', 'Missed'],
      [() => call('pause'), 'paused', 'Suspended'],
      [() => call('resume'), 'new', 'Resumed'],
    ] as const
    for (const [cause, state, reason] of steps) {
      const { statusMs, eventMs } = await measureFlip('flips', cause, state, reason)
      expect(Math.max(statusMs, eventMs)).toBeLessThan(2_000)
    }
    expect(await kubectl('get', 'hbc', 'flips', '-o', 'jsonpath={.status.state}')).toBe('new')
  })

  it('tells of the job in Up, and never in Ready', async () => {
    await place.makeReady('job', { periodSeconds: 3_600, maxRuntimeSeconds: 60 })
    const up = async (state: string) => {
      const object = await waitFor(`it is ${state}`, async () => {
        const now = await place.get('job')
        return now.status?.state === state && now
      })
      expect(conditionOf(object, 'Ready')).toMatchObject({ status: 'True', reason: 'Synced' })
      return conditionOf(object, 'Up')
    }
    expect(await up('new')).toMatchObject({
      status: 'Unknown',
      reason: 'New',
      message: expect.stringMatching(/counts as missed at 2/),
    })
    await ping('job')
    expect(await up('up')).toMatchObject({ status: 'True', reason: 'OnTime' })
    await ping('job', '/fail')
    expect(await up('down')).toMatchObject({ status: 'False', reason: 'JobFailed' })
    await ping('job')
    await up('up')
    await ping('job', '/start')
    await sql(`update check_states set runs = jsonb_set(jsonb_set(runs, '{0,deadlineAt}', '1000'), '{0,startedAt}', '500'), wake_at = now()
      where check_key = (select key from checks where slug = 'job')`)
    expect(await up('down')).toMatchObject({ status: 'False', reason: 'Overran' })
  })

  it('is told once, although its teller died before the status said so, and another one told it', async () => {
    await place.makeReady('once')
    await ping('once')
    await waitFor('it is up', async () => (await place.get('once')).status?.state === 'up')
    const { status } = await place.get('once')
    await measureFlip('once', () => ping('once', '/fail'), 'down', 'Failed')
    await running.operator().stop()
    const path = `/apis/heartbeat-operator.io/v1alpha1/namespaces/${place.name}/heartbeatchecks/once/status`
    expect((await cluster.api('PATCH', path, { status })).status).toBe(200)
    await running.restart()
    await waitFor('the status says down again', async () => (await place.get('once')).status?.state === 'down')
    await running.operator().stop()
    const stories = (await place.events('once')).filter(({ reason }) => reason === 'Failed')
    expect(stories).toEqual([expect.not.objectContaining({ series: expect.anything() })])
    expect(stories[0]?.note).toMatch(/^the job reported a failure at 2/)
    await running.restart()
  })

  it('is told without those before it, whose Events the cluster has forgotten', async () => {
    await place.makeReady('forgotten')
    await ping('forgotten')
    await measureFlip('forgotten', () => ping('forgotten', '/fail'), 'down', 'Failed')
    await running.operator().stop()
    const events = `/apis/events.k8s.io/v1/namespaces/${place.name}/events`
    for (const { metadata } of await place.events('forgotten'))
      await cluster.api('DELETE', `${events}/${metadata.name}`)
    await ping('forgotten')
    await running.restart()
    await waitFor('it is told', async () => (await place.events('forgotten')).length > 0)
    await running.operator().stop()
    expect((await place.events('forgotten')).map(({ reason }) => reason)).toEqual(['Recovered'])
    await running.restart()
  })

  it('is part of the story that kubectl describe tells', async () => {
    await place.makeReady('story', { schedule: '0 2 * * *' })
    await measureFlip('story', () => ping('story'), 'up', 'FirstSuccess')
    await measureFlip('story', () => ping('story', '/fail'), 'down', 'Failed')
    await measureFlip('story', () => ping('story'), 'up', 'Recovered')
    const told = await kubectl('describe', 'hbc', 'story')
    for (const line of [
      /Normal +Created .*heartbeat-operator +the service watches over the job from now on; the ping URL is in Secret story-heartbeat, key HEARTBEAT_URL/,
      /Normal +FirstSuccess .*the job reported its first success/,
      /Warning +Failed .*the job reported a failure at 2\S+Z/,
      /Normal +Recovered .*the job reported a success again at 2\S+Z/,
    ])
      expect(told).toMatch(line)
  })
})
