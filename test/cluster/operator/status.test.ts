/** What people see of a HeartbeatCheck: its status, soon and only when it changed, its Events, and never its ping URL. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { describeError, type Log } from '../../../src/runtime/log.ts'
import { readWrites } from '../../support/api-server-writes.ts'
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

beforeAll(async () => {
  running = await startOperatorAndApi({ pollMs: 200, resyncMs: 1_000, log })
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

describe('the status', () => {
  it('has the columns that people look for', async () => {
    await place.makeReady('nightly-backup', { schedule: '0 2 * * *' })
    const table = async (...wide: string[]) => (await kubectl('get', 'hbc', 'nightly-backup', ...wide)).split('\n')
    const [head, line] = await table()
    expect(head).toMatch(/^NAME +STATE +READY +SCHEDULE +GRACE +LAST PING +AGE$/)
    expect(line).toMatch(/^nightly-backup +new +True +0 2 \* \* \* +3600 +\d+s$/)
    const [wideHead, wideLine] = await table('-o', 'wide')
    expect(wideHead).toMatch(/AGE +REASON +PUBLISHED$/)
    expect(wideLine).toMatch(/\d+s +Synced +nightly-backup-heartbeat$/)
    await ping('nightly-backup')
    await waitFor('the ping is shown', async () => /up +True .* 3600 +\d+s +\d+s/.test((await table())[1]!))
    expect(await kubectl('get', 'hbc', '--field-selector', 'status.state=up', '-o', 'name')).toContain(
      '/nightly-backup',
    )
  })

  it('shows that a completion is late, and the last one at most once a minute', async () => {
    const ago = (name: string, column: string, interval: string) =>
      sql(
        `update check_states set ${column} = now() - interval '${interval}' where check_key = (select key from checks where slug = $1)`,
        name,
      )
    await Promise.all([place.makeReady('late'), place.makeReady('often')])
    await Promise.all([ping('late'), ping('often')])
    await ago('often', 'last_ping_at', '62 seconds')
    const first = await waitFor('the ping is shown', async () => {
      const { lastPingTime } = (await place.get('often')).status!
      return lastPingTime !== undefined && Date.now() - Date.parse(lastPingTime) > 60_000 && lastPingTime
    })
    await sql(
      `update check_states set last_ping_at = $2::timestamptz + interval '59 seconds' where check_key = (select key from checks where slug = $1)`,
      'often',
      first,
    )
    await ago('late', 'expected_at', '1 second')
    const late = await waitFor('it is late', async () => {
      const object = await place.get('late')
      return object.status?.state === 'late' && object
    })
    expect(conditionOf(late, 'Up')).toMatchObject({
      status: 'True',
      reason: 'Late',
      message: expect.stringMatching(/expected at .* missed at/),
    })
    // The poll that found the one had looked at the other.
    expect((await place.get('often')).status?.lastPingTime).toBe(first)
    await ping('often')
    await waitFor('the next one is shown', async () => (await place.get('often')).status?.lastPingTime !== first)
  })

  it('says of each generation what became of it, as kstatus reads it', async () => {
    const { metadata } = await place.makeReady('kstatus')
    expect(kstatusOf(await place.get('kstatus'))).toBe('Current')
    await place.put('secrets', { metadata: { name: 'theirs' } })
    const changed = await place.change('kstatus', { spec: { publish: { name: 'theirs' } } })
    expect(kstatusOf(changed)).toBe('InProgress')
    await place.stalled('kstatus', 'TargetNotOwned')
    const stalled = await place.get('kstatus')
    expect(kstatusOf(stalled)).toBe('Failed')
    expect(stalled.status?.conditions?.map(({ observedGeneration }) => observedGeneration)).toEqual([2, 2, 2, 2])
    // Up has not changed with it.
    const upSince = conditionOf(stalled, 'Up')!.lastTransitionTime
    expect(Date.parse(upSince)).toBeGreaterThanOrEqual(Date.parse(metadata.creationTimestamp!))
    await place.change('kstatus', { spec: { publish: { name: null } } })
    const again = await place.ready('kstatus')
    expect(kstatusOf(again)).toBe('Current')
    expect(conditionOf(again, 'Up')!.lastTransitionTime).toBe(upSince)
  })

  it('leaves everything else as it is: who owns the spec, and what kubectl applied last', async () => {
    const manifest = {
      apiVersion: 'heartbeat-operator.io/v1alpha1',
      kind: 'HeartbeatCheck',
      metadata: { name: 'applied', labels: { team: 'shop' }, annotations: { note: 'ours' } },
      spec: { periodSeconds: 3_600 },
    }
    await cluster.kubectlWith({ input: JSON.stringify(manifest) }, '-n', place.name, 'apply', '-f', '-')
    const { metadata, spec, status } = await place.ready('applied')
    expect(status?.state).toBe('new')
    expect(spec).toMatchObject({ periodSeconds: 3_600, graceSeconds: 3_600 })
    expect(metadata.labels).toEqual({ team: 'shop' })
    expect(Object.keys(metadata.annotations ?? {}).sort()).toEqual([
      'kubectl.kubernetes.io/last-applied-configuration',
      'note',
    ])
    const applied = metadata.managedFields!.find(({ manager }) => manager === 'kubectl-client-side-apply')
    expect(applied?.fieldsV1).toMatchObject({
      'f:metadata': { 'f:annotations': { 'f:kubectl.kubernetes.io/last-applied-configuration': {} } },
    })
    const owners = metadata.managedFields!.map(({ manager, fieldsV1 = {} }) => [
      manager,
      ...Object.keys(fieldsV1).sort(),
    ])
    expect(owners).toContainEqual(['kubectl-client-side-apply', 'f:metadata', 'f:spec'])
    expect(owners.filter((fields) => fields.includes('f:status')).map(([, ...fields]) => fields)).toEqual([
      ['f:status'],
    ])
  })

  it('admits that the service cannot be told of a change yet, and that it goes on trying', async () => {
    await place.makeReady('trouble')
    await sql('alter table checks rename column description to gone')
    try {
      await place.change('trouble', { spec: { graceSeconds: 7 } })
      const object = await waitFor('it is admitted', async () => {
        const now = await place.get('trouble')
        return conditionOf(now, 'Reconciling') !== undefined && now
      })
      expect(conditionOf(object, 'Reconciling')).toMatchObject({ status: 'True', reason: 'ProgressingWithRetry' })
      expect(conditionOf(object, 'Ready')).toMatchObject({ status: 'False' })
      expect(conditionOf(object, 'Up')).toMatchObject({ reason: 'New' })
      expect(object.status).toMatchObject({
        observedGeneration: 1,
        state: 'new',
        published: { name: 'trouble-heartbeat' },
      })
      expect(kstatusOf(object)).toBe('InProgress')
    } finally {
      await sql('alter table checks rename column gone to description')
    }
    expect(conditionOf(await place.ready('trouble'), 'Reconciling')).toBeUndefined()
  })

  it('is written when it changed and never else, and so is everything', async () => {
    await place.makeReady('steady', {
      periodSeconds: 3_600,
      publish: { kind: 'ConfigMap', labels: { a: 'b' }, annotations: { c: 'd' } },
    })
    await place.makeReady('paused', { periodSeconds: 3_600, suspend: true, displayName: ' Paused ', description: 'x' })
    await place.makeReady('failing')
    await ping('failing', '/fail')
    await waitFor('it is down', async () => (await place.get('failing')).status?.state === 'down')
    await place.put('secrets', { metadata: { name: 'not-ours' } })
    await place.create('stuck', { periodSeconds: 3_600, publish: { name: 'not-ours' } })
    await place.stalled('stuck', 'TargetNotOwned')
    const versions = () =>
      kubectl('get', 'hbc,secrets,configmaps,events', '-o', 'jsonpath={.items[*].metadata.resourceVersion}')
    // What other tests left behind is on its way out, and still being tried.
    const places = () => cluster.kubectl('get', 'hbc', '-A', '-o', 'jsonpath={.items[*].metadata.namespace}')
    await waitFor(
      'only the checks of this test are left',
      async () => (await places()).split(' ').every((name) => name === place.name) || null,
      25_000,
    )
    // Another one too, which knows nothing of what the last one has seen.
    for (const change of [async () => {}, () => running.restart()]) {
      await change()
      await passes(1)
      const before = { versions: await versions(), writes: await writes() }
      expect(before.writes['PUT heartbeatchecks/status 200']).toBeGreaterThan(0)
      await passes(2)
      await ping('steady').catch(() => {})
      expect({ versions: await versions(), writes: await writes() }).toEqual(before)
    }
  })

  /** Waits until every check was brought in line so often. */
  async function passes(count: number): Promise<void> {
    const synced = (await kubectl('get', 'hbc', '-A', '-o', 'name')).trim().split('\n').length - 1
    const from = await readMetric('heartbeat_publish_total', { result: 'unchanged' })
    const target = from + count * synced
    await waitFor(
      `${target} looks at what is published`,
      async () => (await readMetric('heartbeat_publish_total', { result: 'unchanged' })) >= target,
      20_000,
    )
  }

  /** By the word of the API server. What is deleted `versions` shows; meanwhile namespaces of earlier tests are emptied. */
  async function writes(): Promise<Record<string, number>> {
    const all = Object.entries(readWrites(await cluster.kubectl('get', '--raw', '/metrics')))
    return Object.fromEntries(all.filter(([what]) => !what.startsWith('DELETE')))
  }

  async function readMetric(name: string, labels: Record<string, string>): Promise<number> {
    const { values } = await running.operator().metrics.registry.getSingleMetric(name)!.get()
    const matching = values.filter((value) =>
      Object.entries(labels).every(([key, text]) => (value.labels as Record<string, unknown>)[key] === text),
    )
    return matching.reduce((sum, { value }) => sum + value, 0)
  }
})

describe('the ping URL', () => {
  it('is in no status, Event, log line, metric or annotation', async () => {
    const { rows } = await running.app.database.query<{ id: string }>('select public_id as id from checks')
    expect(rows.length).toBeGreaterThan(5)
    const told = [
      await kubectl('get', 'hbc,events', '-o', 'json'),
      await kubectl('describe', 'hbc'),
      await running.operator().metrics.registry.metrics(),
      await (await fetch(`${running.app.opsUrl}/metrics`)).text(),
      ...lines,
    ].join('\n')
    expect(lines.length).toBeGreaterThan(3)
    for (const { id } of rows) expect(told).not.toContain(id)
    expect(told).not.toContain(running.app.pingUrl)
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
