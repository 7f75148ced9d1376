/** What people see of a HeartbeatCheck: its status, soon and only when it changed, its Events, and never its ping URL. */

import { describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { describeError, type Log } from '../../src/runtime/log.ts'
import { readMetric } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const lines: string[] = []
const log: Log = Object.fromEntries(
  ['debug', 'info', 'warn', 'error'].map((level) => [
    level,
    (fields: { error?: unknown }, message: string) => {
      const error = fields.error === undefined ? {} : { error: describeError(fields.error) }
      lines.push(JSON.stringify({ ...fields, ...error, message }))
    },
  ]),
) as unknown as Log
const t = useScene({ log })

async function ping(name: string, kind = ''): Promise<void> {
  const { status } = await fetch((await t.place.pingUrl(name)) + kind, { method: 'POST', body: 'disk full' })
  expect(status).toBe(200)
}

describe('the status', () => {
  it('shows that a completion is late, and F7: the last one at most once a minute', async () => {
    const ago = (name: string, column: string, interval: string) =>
      t.sql(
        `update check_states set ${column} = now() - interval '${interval}' where check_key = (select key from checks where slug = $1)`,
        name,
      )
    await Promise.all([t.place.makeReady('late'), t.place.makeReady('often', { periodSeconds: 120 })])
    await Promise.all([ping('late'), ping('often')])
    await ago('often', 'last_ping_at', '62 seconds')
    const first = await eventually('the ping is shown', async () => {
      const { lastPingTime } = (await t.place.get('often')).status!
      return lastPingTime !== undefined && Date.now() - Date.parse(lastPingTime) > 60_000 && lastPingTime
    })
    await t.sql(
      `update check_states set last_ping_at = $2::timestamptz + interval '59 seconds' where check_key = (select key from checks where slug = $1)`,
      'often',
      first,
    )
    await ago('late', 'expected_at', '1 second')
    const late = await t.place.inState('late', 'late')
    expect(conditionOf(late, 'Up')).toMatchObject({
      status: 'True',
      reason: 'Late',
      message: expect.stringMatching(/expected at .* missed at/),
    })
    // The poll that found the one had looked at the other.
    expect((await t.place.get('often')).status?.lastPingTime).toBe(first)
    await ping('often')
    await eventually('the next one is shown', async () => (await t.place.get('often')).status?.lastPingTime !== first)
  })

  it('says of each generation what became of it, as kstatus reads it', async () => {
    const { metadata } = await t.place.makeReady('kstatus')
    expect(kstatusOf(await t.place.get('kstatus'))).toBe('Current')
    await t.place.put('secrets', { metadata: { name: 'theirs' } })
    const changed = await t.place.change('kstatus', { spec: { publish: { name: 'theirs' } } })
    expect(kstatusOf(changed)).toBe('InProgress')
    await t.place.stalled('kstatus', 'TargetNotOwned')
    const stalled = await t.place.get('kstatus')
    expect(kstatusOf(stalled)).toBe('Failed')
    expect(stalled.status?.conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([2, 2, 2, 2])
    // Up has not changed with it.
    const upSince = conditionOf(stalled, 'Up')!.lastTransitionTime
    expect(Date.parse(upSince)).toBeGreaterThanOrEqual(Date.parse(metadata.creationTimestamp!))
    await t.place.change('kstatus', { spec: { publish: { name: null } } })
    const again = await t.place.ready('kstatus')
    expect(kstatusOf(again)).toBe('Current')
    expect(conditionOf(again, 'Up')!.lastTransitionTime).toBe(upSince)
  })

  it('says that a change is not in the service yet, and that it is retried', async () => {
    await t.place.makeReady('trouble')
    await t.sql('alter table checks rename column description to gone')
    try {
      await t.place.change('trouble', { spec: { graceSeconds: 7 } })
      const object = await eventually('it is admitted', async () => {
        const now = await t.place.get('trouble')
        return conditionOf(now, 'Reconciling') !== undefined && now
      })
      expect(conditionOf(object, 'Reconciling')).toMatchObject({ status: 'True', reason: 'ProgressingWithRetry' })
      expect(conditionOf(object, 'Ready')).toMatchObject({ status: 'False' })
      // With a cause; what names tables and hosts is for the log.
      const { message } = conditionOf(object, 'Ready')!
      expect(message).toBe(
        'this specification is not in effect yet, and the operator tries again: an internal error (42703), of which the log of the controller says more',
      )
      expect(conditionOf(object, 'Up')).toMatchObject({ reason: 'New' })
      expect(object.status).toMatchObject({
        observedGeneration: 1,
        state: 'new',
        published: { name: 'trouble-heartbeat' },
      })
      expect(kstatusOf(object)).toBe('InProgress')
    } finally {
      await t.sql('alter table checks rename column gone to description')
    }
    expect(conditionOf(await t.place.ready('trouble'), 'Reconciling')).toBeUndefined()
  })

  it('says what the API server answered, and what it answers next, without the URL', async () => {
    await t.place.makeReady('rejected')
    const url = await t.place.pingUrl('rejected')
    const reject = (status: number, reason: string) =>
      t.cluster.server.disturb(
        ({ method, path }) => method !== 'GET' && path.includes('/secrets'),
        { status, reason, message: `failed calling webhook for ${url}: {"HEARTBEAT_URL":"${btoa(url)}"}` },
        Number.POSITIVE_INFINITY,
      )
    const says = (message: string) =>
      eventually(`it says ${message}`, async () => {
        const said = (await t.place.condition('rejected', 'Reconciling'))?.message
        return said === `this specification is not in effect yet, and the operator tries again: ${message}`
      })
    const request = `patch secrets ${t.place.name}/rejected-heartbeat`
    const first = reject(500, 'InternalError')
    await t.place.change('rejected', { spec: { publish: { key: 'OTHER' } } })
    await says(`the API server answered 500 InternalError to: ${request}`)
    first()
    const second = reject(504, 'Timeout')
    await says(`the API server answered 504 Timeout to: ${request}`)
    second()
    expect(conditionOf(await t.place.ready('rejected'), 'Reconciling')).toBeUndefined()
  })

  it('is written when it changed and never else, and so is everything', async () => {
    await t.place.makeReady('steady', {
      periodSeconds: 3_600,
      publish: { kind: 'ConfigMap', labels: { a: 'b' }, annotations: { c: 'd' } },
    })
    await t.place.makeReady('paused', {
      periodSeconds: 3_600,
      suspend: true,
      displayName: ' Paused ',
      description: 'x',
    })
    await t.place.makeReady('failing')
    await ping('failing', '/fail')
    await t.place.inState('failing', 'down')
    await t.place.put('secrets', { metadata: { name: 'not-ours' } })
    await t.place.apply('stuck', { periodSeconds: 3_600, publish: { name: 'not-ours' } })
    await t.place.stalled('stuck', 'TargetNotOwned')
    // The next one too, which knows nothing of what this one has seen.
    for (const change of [async () => {}, () => t.restart()]) {
      await change()
      await passes(1)
      const before = writes()
      expect(before).toContain(`PUT ${t.place.pathOf('steady')}/status`)
      await passes(2)
      await ping('steady').catch(() => {})
      expect(writes()).toEqual(before)
    }
  })

  /** Waits until every check was brought in line so often. */
  async function passes(count: number): Promise<void> {
    const synced = (await t.place.list()).filter((check) => kstatusOf(check) === 'Current').length
    const unchanged = () => readMetric(t.operator(), 'heartbeat_publish_total', { result: 'unchanged' })
    const target = (await unchanged()) + count * synced
    await eventually(`${target} reads of what is published`, async () => (await unchanged()) >= target)
  }

  /** Leases are renewed, and rights asked for, all the time. */
  function writes(): string[] {
    return t.cluster.server.requests
      .filter(({ method, path }) => method !== 'GET' && !/\/leases|reviews$/.test(path))
      .map(({ method, path }) => `${method} ${path}`)
  }
})

describe('the ping URL', () => {
  it('is in no status, Event, log line, metric or annotation', async () => {
    const { rows } = await t.app.database.query<{ id: string }>('select public_id as id from checks')
    expect(rows.length).toBeGreaterThan(5)
    const events = `/apis/events.k8s.io/v1/namespaces/${t.place.name}/events`
    const shown = [
      JSON.stringify(await t.place.list()),
      JSON.stringify((await t.cluster.api('GET', events)).body),
      await t.operator().metrics.registry.metrics(),
      await (await fetch(`${t.app.opsUrl}/metrics`)).text(),
      ...lines,
    ].join('\n')
    expect(lines.length).toBeGreaterThan(3)
    for (const { id } of rows) {
      expect(shown).not.toContain(id)
      expect(shown).not.toContain(btoa(`${t.app.pingUrl}/ping/${id}`))
    }
    expect(shown).not.toContain(t.app.pingUrl)
  })
})

/** As kubernetes-sigs/cli-utils computes it. */
function kstatusOf({ metadata, status }: HeartbeatCheck): 'InProgress' | 'Failed' | 'Current' {
  const is = (type: string) => status?.conditions?.find((condition) => condition.type === type)?.status
  if (metadata.deletionTimestamp !== undefined || status?.observedGeneration !== metadata.generation)
    return 'InProgress'
  if (is('Reconciling') === 'True') return 'InProgress'
  if (is('Stalled') === 'True') return 'Failed'
  return is('Ready') === 'False' ? 'InProgress' : 'Current'
}
