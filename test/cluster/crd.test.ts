/** The definition of HeartbeatCheck, judged by the API server that enforces it. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RESOURCE_DEFINITION } from '../../src/operator/schema/definition.ts'
import { cluster } from '../support/cluster.ts'
import type { Manifest } from '../support/heartbeat-checks/rule-case.ts'
import { PROJECT_RULE, SOURCE_RULE, SPEC_CASES } from '../support/heartbeat-checks/spec-cases.ts'
import { STATUS_CASES } from '../support/heartbeat-checks/status-cases.ts'

let namespace: Awaited<ReturnType<typeof cluster.makeNamespace>>
let checks: string

beforeAll(async () => {
  namespace = await cluster.makeNamespace()
  checks = `/apis/heartbeat-operator.io/v1/namespaces/${namespace.name}/heartbeatchecks`
  const made = await cluster.api('POST', checks, describeCheck({ name: 'kept', spec: { periodSeconds: 60 } }))
  expect(made.status).toBe(201)
})
afterAll(() => namespace[Symbol.asyncDispose]())

function describeCheck({ name = 'a', spec }: Manifest) {
  return { apiVersion: 'heartbeat-operator.io/v1', kind: 'HeartbeatCheck', metadata: { name }, spec }
}

const create = (manifest: Manifest, query = 'dryRun=All&fieldValidation=Strict') =>
  cluster.api('POST', `${checks}?${query}`, describeCheck(manifest))
const writeStatus = ({ status }: Manifest) => cluster.api('PATCH', `${checks}/kept/status?dryRun=All`, { status })

type Answer = Awaited<ReturnType<typeof create>>

/** Said for a fault that keeps the API server from going on. */
const SHAPE = 'should match'
const NOT_GONE_ON = 'some validation rules were not checked'

function expectRefusal({ status, body }: Answer, at: string, says: string): void {
  expect(status, JSON.stringify(body)).toBe(422)
  // A shape is refused twice, by its pattern and in words.
  const causes = (body.details.causes as { field: string; message: string }[]).filter(
    ({ message }) => !message.includes(NOT_GONE_ON) && message.includes(SHAPE) === says.includes(SHAPE),
  )
  expect(causes).toEqual([expect.objectContaining({ field: at, message: expect.stringContaining(says) })])
  // What kubectl shows.
  expect(body.message).toContain(at)
  expect(body.message).toContain(says)
}

describe('a spec', () => {
  it.each(SPEC_CASES)('$field: $rule', async ({ accepted, refused, at, says }) => {
    const answer = await create(accepted)
    expect(answer.status, JSON.stringify(answer.body)).toBe(201)
    expectRefusal(await create(refused), at, says)
  })

  it.each(['TZ=UTC 0 2 * * *', '@every 1h'])('the schedule %s is one fault', async (schedule) => {
    const { status, body } = await create({ spec: { schedule } })
    expect(status).toBe(422)
    expect(
      body.details.causes.filter(({ message }: { message: string }) => !message.includes(NOT_GONE_ON)),
    ).toHaveLength(1)
  })

  it.each([
    ['periodSeconds', '60', 'integer'],
    ['periodSeconds', 60.5, 'int32'],
    ['graceSeconds', true, 'int32'],
    ['maxRuntimeSeconds', [], 'integer'],
    ['displayName', 5, 'string'],
    ['description', {}, 'string'],
    ['project', ['a'], 'string'],
    ['timeZone', 1, 'string'],
    ['schedule', 5, 'string'],
    ['deletionPolicy', true, 'string'],
    ['suspend', 'yes', 'boolean'],
    ['publish', 'Secret', 'object'],
  ])('%s is not %j', async (field, value, type) => {
    const { status, body } = await create({ spec: { periodSeconds: 60, [field]: value } })
    expect(status).toBe(422)
    expect(body.details.causes).toContainEqual(
      expect.objectContaining({ field: `spec.${field}`, message: expect.stringContaining(`must be of type ${type}`) }),
    )
  })

  it('gets its defaults, and none where absence means something', async () => {
    const { body } = await create({ spec: { periodSeconds: 60 } })
    expect(body.spec).toEqual({
      periodSeconds: 60,
      deletionPolicy: 'Delete',
    })
    const sourceRef = { kind: 'CronJob', name: 'nightly-backup' }
    expect((await create({ spec: { sourceRef } })).body.spec).toEqual({
      sourceRef: { apiGroup: 'batch', ...sourceRef },
      deletionPolicy: 'Delete',
    })
  })

  it('takes nulls for absent fields, and gets no defaults within publish', async () => {
    const publish = { name: 'urls', kind: null }
    const { body } = await create({ spec: { periodSeconds: 60, graceSeconds: null, suspend: null, publish } })
    expect(body.spec).toMatchObject({ publish: { name: 'urls' } })
    expect(Object.keys(body.spec.publish)).toEqual(['name'])
    expect(body.spec).not.toHaveProperty('suspend')
    expect(body.spec).not.toHaveProperty('graceSeconds')
  })

  it('loses an unknown field, or is refused for it, as its sender wishes', async () => {
    const manifest = { spec: { periodSeconds: 60, gracePeriod: 5 } }
    const pruned = await create(manifest, 'dryRun=All&fieldValidation=Warn')
    expect(pruned.body.spec).not.toHaveProperty('gracePeriod')
    expect(pruned.headers.warning).toContain('unknown field \\"spec.gracePeriod\\"')
    const refused = await create(manifest)
    expect(refused.status).toBe(400)
    expect(refused.body.message).toContain('unknown field "spec.gracePeriod"')
  })
})

describe('the project', () => {
  const path = (name: string) => `${checks}/${name}`
  const change = (name: string, spec: object) => cluster.api('PATCH', `${path(name)}?dryRun=All`, { spec })

  beforeAll(async () => {
    const made = await create({ name: 'bound', spec: { periodSeconds: 60, project: 'payments' } }, '')
    expect(made.status).toBe(201)
  })

  it('stays what it is while all else changes', async () => {
    expect((await change('bound', { project: 'payments', periodSeconds: null, schedule: '@daily' })).status).toBe(200)
    expect((await change('kept', { periodSeconds: 120, displayName: 'x' })).status).toBe(200)
  })

  it.each([
    ['is not changed', 'bound', 'shop'],
    ['is not removed', 'bound', null],
    ['is not added', 'kept', 'shop'],
  ])('%s', async (_, name, project) => {
    expectRefusal(await change(name, { project }), PROJECT_RULE.at, PROJECT_RULE.rule)
  })
})

describe('the source', () => {
  const change = (name: string, spec: object) => cluster.api('PATCH', `${checks}/${name}?dryRun=All`, { spec })
  const sourceRef = { kind: 'CronJob', name: 'nightly-backup' }

  beforeAll(async () => {
    expect((await create({ name: 'following', spec: { sourceRef } }, '')).status).toBe(201)
  })

  it('stays what it is while all else changes', async () => {
    expect((await change('following', { sourceRef, graceSeconds: 60, publish: { kind: 'None' } })).status).toBe(200)
  })

  it.each([
    ['is not changed', 'following', { sourceRef: { name: 'other' } }],
    ['is not removed', 'following', { sourceRef: null, periodSeconds: 60 }],
    ['is not added', 'kept', { sourceRef, periodSeconds: null }],
  ])('%s', async (_, name, spec) => {
    expectRefusal(await change(name, spec), SOURCE_RULE.at, SOURCE_RULE.rule)
  })
})

describe('server-side apply', () => {
  const apply = async (name: string, manager: string, spec: object) => {
    const path = `${checks}/${name}?fieldManager=${manager}`
    const body = { ...describeCheck({ name }), spec }
    const answer = await cluster.api('PATCH', path, JSON.stringify(body), 'application/apply-patch+yaml')
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    return answer.body
  }

  it('of the same sourceRef changes nothing, with the group or without it', async () => {
    const sourceRef = { kind: 'CronJob', name: 'nightly-backup' }
    const { metadata } = await apply('applied', 'git', { sourceRef })
    for (const [manager, given] of [
      ['git', sourceRef],
      ['git', { apiGroup: 'batch', ...sourceRef }],
      ['helm', { apiGroup: 'batch', ...sourceRef }],
    ] as const) {
      const { spec, metadata: after } = await apply('applied', manager, { sourceRef: given })
      expect(spec.sourceRef).toEqual({ apiGroup: 'batch', ...sourceRef })
      expect([after.uid, after.generation]).toEqual([metadata.uid, 1])
    }
  })

  it('of tags by two managers keeps those of both', async () => {
    await apply('tagged', 'git', { periodSeconds: 60, tags: ['team:shop', 'nightly'] })
    await apply('tagged', 'policy', { tags: ['audited', 'nightly'] })
    const { spec } = await apply('tagged', 'git', { periodSeconds: 60, tags: ['team:shop'] })
    expect(spec.tags.toSorted()).toEqual(['audited', 'nightly', 'team:shop'])
  })
})

describe('a status', () => {
  it.each(STATUS_CASES)('$field: $rule', async ({ accepted, refused, at, says }) => {
    const answer = await writeStatus(accepted)
    expect(answer.status, JSON.stringify(answer.body)).toBe(200)
    expect(answer.body.status).toEqual(accepted.status)
    expectRefusal(await writeStatus(refused), at, says)
  })

  it('is not written along with the spec, nor moves the generation', async () => {
    const { body } = await cluster.api('PATCH', `${checks}/kept`, { status: { state: 'up' } })
    expect(body.status).toBeUndefined()
    const written = await cluster.api('PATCH', `${checks}/kept/status`, {
      status: { state: 'up' },
      spec: { graceSeconds: 5 },
    })
    expect(written.body).toMatchObject({
      status: { state: 'up' },
      spec: { periodSeconds: 60 },
      metadata: { generation: 1 },
    })
    expect(written.body.spec).not.toHaveProperty('graceSeconds')
  })
})

describe('kubectl', () => {
  const kubectl = (...args: string[]) => cluster.kubectl('-n', namespace.name, ...args)
  const rows = (text: string) =>
    text
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/\s{2,}/))
  const ready = { type: 'Ready', status: 'True', reason: 'Synced', message: '' }
  const up = { type: 'Up', status: 'False', reason: 'JobFailed', message: '' }
  const lastTransitionTime = '2026-03-01T02:10:00Z'

  beforeAll(async () => {
    await create({ name: 'nightly', spec: { schedule: '0 2 * * *', suspend: true } }, '')
    await cluster.api('PATCH', `${checks}/nightly/status`, {
      status: {
        state: 'down',
        stateTime: new Date(Date.now() - 600_500).toISOString(),
        reason: 'JobFailed',
        schedule: '0 2 * * *',
        cadence: '0 2 * * *',
        timeZone: 'Europe/Berlin',
        graceSeconds: 3_600,
        lastPingTime: new Date(Date.now() - 90_500).toISOString(),
        published: { kind: 'Secret', name: 'nightly-heartbeat' },
        lastRun: { name: 'nightly-1', outcome: 'Failed', exitCode: 137, reason: 'OOMKilled', message: 'killed' },
        conditions: [ready, up].map((condition) => ({ ...condition, lastTransitionTime })),
      },
    })
  })

  it('shows what a check is, and why it is down', async () => {
    const [head, row] = rows(await kubectl('get', 'hbc', 'nightly'))
    expect(head).toEqual(['NAME', 'STATE', 'READY', 'SCHEDULE', 'LAST PING', 'LAST RUN', 'WHY', 'AGE'])
    expect(row).toEqual([
      'nightly',
      'down',
      'True',
      '0 2 * * *',
      expect.stringMatching(/^9\ds$/),
      'Failed',
      'JobFailed',
      expect.stringMatching(/^\d+s$/),
    ])
  })

  it('shows the grace time, the time zone, where the URL is, and since when it is down with -o wide', async () => {
    const [head, row] = rows(await kubectl('get', 'hbc', 'nightly', '-o', 'wide'))
    expect(head?.slice(7)).toEqual(['AGE', 'GRACE', 'TIME ZONE', 'RUN REASON', 'PUBLISHED', 'SINCE'])
    const since = expect.stringMatching(/^10m/)
    expect(row?.slice(8)).toEqual(['3600', 'Europe/Berlin', 'OOMKilled', 'nightly-heartbeat', since])
  })

  it.each(['hbc', 'heartbeatcheck', 'heartbeatchecks', 'heartbeats', 'heartbeatchecks.v1.heartbeat-operator.io'])(
    'knows them as %s',
    async (name) => {
      expect(await kubectl('get', name, '-o', 'name')).toContain('heartbeatcheck.heartbeat-operator.io/nightly')
    },
  )

  it('does not show them among all', async () => {
    expect(await kubectl('get', 'all', '-o', 'name')).not.toContain('heartbeat')
  })

  it.each([
    ['status.state=down', ['nightly']],
    ['spec.suspend=true', ['nightly']],
    ['spec.project=payments', ['bound']],
    ['spec.project!=payments,status.state=up', ['kept']],
  ])('selects by %s', async (selector, names) => {
    const found = await kubectl('get', 'hbc', '--field-selector', selector, '-o', 'jsonpath={.items[*].metadata.name}')
    expect(found.split(' ')).toEqual(names)
  })

  it('waits for Ready', async () => {
    expect(await kubectl('wait', '--for=condition=Ready', 'hbc/nightly', '--timeout=10s')).toContain('condition met')
  })

  it('explains every field', async () => {
    const { openAPIV3Schema } = RESOURCE_DEFINITION.spec.versions[0]!.schema as unknown as {
      openAPIV3Schema: Explained
    }
    const words = (text: string) => text.replace(/\s+/g, ' ')
    for (const part of [
      'spec',
      'spec.publish',
      'spec.sourceRef',
      'status',
      'status.source',
      'status.lastRun',
      'status.published',
      'status.conditions',
    ]) {
      const field = part.split('.').reduce((inner, name) => childrenOf(inner)[name]!, openAPIV3Schema)
      const explained = words(await kubectl('explain', `hbc.${part}`))
      expect(explained).toContain(words(field.description))
      for (const [name, { description }] of Object.entries(childrenOf(field))) {
        expect(explained).toMatch(new RegExp(`\\b${name} <`))
        expect(explained).toContain(words(description))
      }
    }
  })
})

interface Explained {
  readonly description: string
  readonly properties?: Readonly<Record<string, Explained>>
  readonly items?: Explained
}

function childrenOf({ properties, items }: Explained): Readonly<Record<string, Explained>> {
  return properties ?? items?.properties ?? {}
}
