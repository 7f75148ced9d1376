import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parseCron } from '../../../src/domain/cron.ts'
import {
  type HeartbeatCheck,
  type HeartbeatCheckSpec,
  readHeartbeatCheck,
} from '../../../src/operator/heartbeat-check.ts'

function aHeartbeatCheck(spec: HeartbeatCheckSpec, name = 'nightly-backup'): HeartbeatCheck {
  return { metadata: { name, namespace: 'shop', uid: 'u', resourceVersion: '1' }, spec }
}

function declare(spec: HeartbeatCheckSpec) {
  const read = readHeartbeatCheck(aHeartbeatCheck(spec))
  expect(read).toMatchObject({ ok: true })
  if (!read.ok) throw new Error(read.faults.join())
  return read.declaration
}

const faultsOf = (spec: unknown, name?: string) => {
  const read = readHeartbeatCheck(aHeartbeatCheck(spec as HeartbeatCheckSpec, name))
  return read.ok ? [] : read.faults
}

describe('reading a HeartbeatCheck', () => {
  it('sets every default of the smallest one', () => {
    expect(declare({ periodSeconds: 3_600 })).toEqual({
      name: 'nightly-backup',
      description: null,
      tags: [],
      spec: { periodSeconds: 3_600, schedule: null, timeZone: null, graceSeconds: 3_600, maxRuntimeSeconds: null },
      suspend: null,
      project: null,
      deletionPolicy: 'Delete',
      publish: {
        kind: 'Secret',
        name: 'nightly-backup-heartbeat',
        key: 'HEARTBEAT_URL',
        labels: {},
        annotations: {},
      },
    })
  })

  it('takes over everything that is given', () => {
    const labels = { team: 'data' }
    const annotations = { 'example.com/a': 'b' }
    expect(
      declare({
        displayName: ' Nightly backup ',
        description: 'ask\nBob ',
        tags: ['team:b', 'a'],
        schedule: '0 2 * * *',
        timeZone: 'Europe/Berlin',
        graceSeconds: 0,
        maxRuntimeSeconds: 7_200,
        suspend: false,
        project: 'payments',
        deletionPolicy: 'Retain',
        publish: { kind: 'ConfigMap', name: 'urls', key: 'BACKUP_URL', labels, annotations },
      }),
    ).toEqual({
      name: 'Nightly backup',
      description: 'ask\nBob ',
      tags: ['team:b', 'a'],
      spec: {
        periodSeconds: null,
        schedule: '0 2 * * *',
        timeZone: 'Europe/Berlin',
        graceSeconds: 0,
        maxRuntimeSeconds: 7_200,
      },
      suspend: false,
      project: 'payments',
      deletionPolicy: 'Retain',
      publish: { kind: 'ConfigMap', name: 'urls', key: 'BACKUP_URL', labels, annotations },
    })
  })

  it('sets UTC for a schedule without a time zone', () => {
    expect(declare({ schedule: '@daily' }).spec.timeZone).toBe('UTC')
  })

  it('ignores fields that only a newer definition knows', () => {
    expect(faultsOf({ periodSeconds: 60, cronJobRef: { name: 'backup' } })).toEqual([])
  })
})

describe('what the API server cannot validate is rejected with its field and what would be right', () => {
  it.each([
    [{ schedule: '0 25 * * *' }, 'spec.schedule has "25" as hour: 25 is too large; give values from 0 to 23'],
    [{ schedule: '0 0 * * 7' }, 'and Sunday is 0 or SUN'],
    [{ schedule: '0 0 31 2 *' }, 'spec.schedule must come at some time: "0 0 31 2 *" names no real date'],
    [{ schedule: '@daily', timeZone: 'europe/berlin' }, 'spec.timeZone must be an IANA time zone like Europe/Berlin'],
    [{ schedule: '@daily', timeZone: 'Mars/Olympus' }, 'not "Mars/Olympus"'],
  ])('%j', (spec, says) => {
    const faults = faultsOf(spec)
    expect(faults).toEqual([expect.stringContaining(says)])
    expect(faults[0]).toMatch(/^spec\.(schedule|timeZone) /)
    expect(faults[0]).not.toMatch(/_zone|_seconds/)
  })

  it('a date that exists only in leap years is accepted', () => {
    expect(faultsOf({ schedule: '0 0 29 2 *' })).toEqual([])
  })
})

describe('what the API server should have rejected is rejected again', () => {
  it.each<[unknown, string[]]>([
    [undefined, ['spec must be an object']],
    [
      {},
      [
        'spec.periodSeconds or spec.schedule must be given: how often the job completes, or the cron expression by which it runs',
      ],
    ],
    [
      { schedule: 'TZ=UTC 0 2 * * *' },
      ['spec.schedule must not hold a time zone: give it as spec.timeZone, beside the schedule'],
    ],
    [
      { periodSeconds: 1, graceSeconds: 0.5, displayName: '' },
      [
        'spec.displayName must not be empty: give a name, or leave the field out to use metadata.name',
        'spec.periodSeconds must be an integer from 10 to 31536000',
        'spec.graceSeconds must be an integer from 0 to 31536000',
      ],
    ],
    [
      { periodSeconds: 60, publish: { kind: 'Pod', labels: { a: 1 } } },
      ['spec.publish.kind must be one of Secret, ConfigMap', 'spec.publish.labels.a must be text'],
    ],
    [{ periodSeconds: 60, suspend: 'yes' }, ['spec.suspend must be true or false']],
  ])('%j', (spec, faults) => {
    expect(faultsOf(spec)).toEqual(faults)
  })

  it('a name that is too long for a label is rejected', () => {
    expect(faultsOf({ periodSeconds: 60 }, 'n'.repeat(63))).toEqual([])
    expect(faultsOf({ periodSeconds: 60 }, 'n'.repeat(64))).toEqual([
      'metadata.name must have at most 63 characters: it becomes the value of a label',
    ])
  })
})

it('every expression that robfig/cron takes and we understand passes the definition, outlandish white space aside', () => {
  const file = new URL('../../fixtures/cron-slots/expressions.json', import.meta.url)
  const { accepted } = JSON.parse(readFileSync(file, 'utf8')) as { accepted: string[] }
  const understood = accepted.filter((schedule) => /^[\t\n\r -~]*$/.test(schedule) && isUnderstood(schedule))
  expect(understood.length).toBeGreaterThan(50)
  for (const schedule of understood)
    expect(faultsOf({ schedule }).filter((fault) => !fault.includes('no real date'))).toEqual([])
})

function isUnderstood(expression: string): boolean {
  try {
    parseCron(expression, 'UTC')
    return true
  } catch {
    return false
  }
}
