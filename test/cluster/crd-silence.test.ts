/** The definition of HeartbeatSilence, judged by the API server that enforces it, and by the operator. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type HeartbeatSilence, readSilence } from '../../src/operator/schema/silence.ts'
import { cluster } from '../support/cluster.ts'

let namespace: Awaited<ReturnType<typeof cluster.makeNamespace>>
beforeAll(async () => {
  namespace = await cluster.makeNamespace()
})
afterAll(() => namespace[Symbol.asyncDispose]())

const create = (spec: object) =>
  cluster.api(
    'POST',
    `/apis/heartbeat-operator.io/v1/namespaces/${namespace.name}/heartbeatsilences?dryRun=All&fieldValidation=Strict`,
    { apiVersion: 'heartbeat-operator.io/v1', kind: 'HeartbeatSilence', metadata: { name: 'a' }, spec },
  )
const read = (spec: object) => readSilence({ spec } as HeartbeatSilence)

const ONCE = { endsAt: '2030-02-01T02:00:00Z', comment: 'Work' }
const AGAIN = { schedule: '0 2 * * 0', durationSeconds: 7_200, comment: 'Each Sunday' }
const selecting = (checkSelector: object) => ({ ...ONCE, checkSelector })
const expressions = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ key: `k${index}`, operator: 'Exists' }))
const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))

describe('a spec is accepted', () => {
  it.each([
    [ONCE],
    [{ ...ONCE, startsAt: '2030-02-01T02:59:59+01:00' }],
    [{ ...ONCE, startsAt: '0001-01-01T00:00:00Z', endsAt: '9999-12-31T23:59:59Z' }],
    [{ ...ONCE, comment: '' }],
    [{ ...ONCE, comment: 'x'.repeat(200) }],
    [AGAIN],
    [{ ...AGAIN, timeZone: 'Europe/Berlin' }],
    [{ ...AGAIN, schedule: '@weekly', durationSeconds: 10 }],
    [{ ...AGAIN, durationSeconds: 2_592_000 }],
    [selecting({})],
    [selecting({ matchLabels: { 'example.com/team': 'shop', tier: '' } })],
    [
      selecting({
        matchExpressions: [
          { key: 'tier', operator: 'NotIn', values: ['db', 'cache'] },
          { key: 'old', operator: 'DoesNotExist' },
        ],
      }),
    ],
    [selecting({ matchLabels: labels(16), matchExpressions: expressions(16) })],
  ])('%j', async (spec) => {
    const { status, body } = await create(spec)
    expect(status, JSON.stringify(body)).toBe(201)
    expect(read(spec)).not.toHaveProperty('faults')
  })
})

describe('a spec is refused', () => {
  it.each([
    ['without times', { comment: 'Work' }, 'give either spec.endsAt or spec.schedule'],
    ['with both times and a schedule', { ...ONCE, ...AGAIN }, 'give either spec.endsAt or spec.schedule'],
    [
      'with a schedule alone',
      { ...AGAIN, durationSeconds: undefined },
      'spec.schedule and spec.durationSeconds go together',
    ],
    [
      'with a duration beside an end',
      { ...ONCE, durationSeconds: 60 },
      'spec.schedule and spec.durationSeconds go together',
    ],
    [
      'with a beginning beside a schedule',
      { ...AGAIN, startsAt: '2030-01-01T00:00:00Z' },
      'must be left out without spec.endsAt',
    ],
    ['with a time zone beside an end', { ...ONCE, timeZone: 'UTC' }, 'must be left out without spec.schedule'],
    [
      'that ends too soon',
      { ...ONCE, startsAt: '2030-02-01T01:59:59.001Z' },
      'must be at least a second after spec.startsAt',
    ],
    ['with an end that is no time', { ...ONCE, endsAt: 'tomorrow' }, 'endsAt'],
    ['that holds too short', { ...AGAIN, durationSeconds: 9 }, 'durationSeconds'],
    ['that holds too long', { ...AGAIN, durationSeconds: 2_592_001 }, 'durationSeconds'],
    ['with every so often', { ...AGAIN, schedule: '@every 1h' }, 'must not be @every'],
    ['with a zone in the schedule', { ...AGAIN, schedule: 'TZ=UTC 0 2 * * 0' }, 'must not hold a time zone'],
    ['without a comment', { endsAt: ONCE.endsAt }, 'comment'],
    ['with a long comment', { ...ONCE, comment: 'x'.repeat(201) }, 'comment'],
    ['with a control character', { ...ONCE, comment: 'a\u0007' }, 'must have no control characters'],
    [
      'with no values to compare',
      selecting({ matchExpressions: [{ key: 'a', operator: 'In' }] }),
      'must have values with In',
    ],
    [
      'with values that nothing compares',
      selecting({ matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] }),
      'must have values with In',
    ],
    [
      'with an operator that is none',
      selecting({ matchExpressions: [{ key: 'a', operator: 'Gt', values: ['1'] }] }),
      'operator',
    ],
    [
      'with a key that is none',
      selecting({ matchExpressions: [{ key: '-a', operator: 'Exists' }] }),
      'must be a key such as',
    ],
    ['with a value that is none', selecting({ matchLabels: { a: 'b c' } }), 'must be the value of a label'],
    ['with many expressions', selecting({ matchExpressions: expressions(17) }), 'matchExpressions'],
    ['with many labels', selecting({ matchLabels: labels(17) }), 'matchLabels'],
  ])('%s', async (_, spec, says) => {
    const { status, body } = await create(spec)
    expect([400, 422], JSON.stringify(body)).toContain(status)
    expect(body.message).toContain(says)
    expect(read(spec)).toHaveProperty('faults')
  })
})
