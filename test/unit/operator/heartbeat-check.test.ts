import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { parseCron } from '../../../src/domain/cron.ts'
import { type HeartbeatCheckSpec, readHeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { labelValueOf } from '../../../src/operator/publish/long-names.ts'
import { aHeartbeatCheck } from '../../support/builders.ts'

const check = (spec: HeartbeatCheckSpec, name = 'nightly-backup') => aHeartbeatCheck({ metadata: { name }, spec })

function declare(spec: HeartbeatCheckSpec) {
  const read = readHeartbeatCheck(check(spec))
  expect(read).toMatchObject({ ok: true })
  if (!read.ok) throw new Error(read.faults.join())
  return read.declaration
}

const faultsOf = (spec: unknown, name?: string) => {
  const read = readHeartbeatCheck(check(spec as HeartbeatCheckSpec, name))
  return read.ok ? [] : read.faults
}

describe('reading a HeartbeatCheck', () => {
  it('sets every default of the smallest one', () => {
    expect(declare({ periodSeconds: 3_600 })).toEqual({
      name: 'nightly-backup',
      description: null,
      tags: [],
      channels: null,
      dependsOn: [],
      dependencies: [],
      labels: {},
      droppedLabels: [],
      spec: { ...NO_SPEC, periodSeconds: 3_600, graceSeconds: 360 },
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
        warnExitCodes: [24, 3],
        failuresBeforeDown: 2,
        missesBeforeDown: 3,
        remindEverySeconds: 86_400,
        remindOnEachRun: true,
        dependsOn: ['network', 'database'],
        suspend: false,
        project: 'payments',
        deletionPolicy: 'Retain',
        publish: { kind: 'ConfigMap', name: 'urls', key: 'BACKUP_URL', labels, annotations },
      }),
    ).toEqual({
      name: 'Nightly backup',
      description: 'ask\nBob ',
      tags: ['team:b', 'a'],
      channels: null,
      dependsOn: [],
      dependencies: ['network', 'database'],
      labels: {},
      droppedLabels: [],
      spec: {
        ...NO_SPEC,
        schedule: '0 2 * * *',
        timeZone: 'Europe/Berlin',
        graceSeconds: 0,
        maxRuntimeSeconds: 7_200,
        warnExitCodes: [3, 24],
        failuresBeforeDown: 2,
        missesBeforeDown: 3,
        remindEverySeconds: 86_400,
        remindOnEachRun: true,
      },
      suspend: false,
      project: 'payments',
      deletionPolicy: 'Retain',
      publish: { kind: 'ConfigMap', name: 'urls', key: 'BACKUP_URL', labels, annotations },
    })
  })

  it('takes over its labels, of more than 32 the first by name', () => {
    const declareWith = (labels: Record<string, string>) => {
      const read = readHeartbeatCheck(aHeartbeatCheck({ metadata: { labels } }))
      return read.ok ? read.declaration : null
    }
    const label = (index: number) => [`label-${index}`, `${index}`] as const
    const labels = Object.fromEntries(Array.from({ length: 32 }, (_, index) => label(41 - index)))
    expect(declareWith(labels)).toMatchObject({ labels, droppedLabels: [] })
    const { 'label-41': _, ...kept } = labels
    const declared = declareWith({ 'label-42': '', ...labels, Zone: 'a' })
    expect(declared).toMatchObject({ labels: { ...kept, Zone: 'a' }, droppedLabels: ['label-41', 'label-42'] })
    expect(Object.keys(declared!.labels)).toHaveLength(32)
  })

  it('sets UTC for a schedule without a time zone', () => {
    expect(declare({ schedule: '@daily' }).spec?.timeZone).toBe('UTC')
  })

  it('ignores fields that only a newer definition knows', () => {
    expect(faultsOf({ periodSeconds: 60, workflowRef: { name: 'backup' } })).toEqual([])
  })

  it('leaves to the CronJob what it takes from it, and publishes nothing', () => {
    const sourceRef = { kind: 'CronJob', name: 'backup' } as const
    expect(declare({ sourceRef })).toMatchObject({
      spec: null,
      suspend: null,
      follows: {
        apiGroup: 'batch',
        kind: 'CronJob',
        name: 'backup',
        graceSeconds: null,
        maxRuntimeSeconds: null,
      },
      publish: null,
    })
    expect(declare({ sourceRef }).follows).toMatchObject({ judging: {} })
    const judging = { failuresBeforeDown: 2, remindOnEachRun: true }
    const { follows } = declare({
      sourceRef,
      graceSeconds: 0,
      maxRuntimeSeconds: 60,
      warnExitCodes: [24, 3],
      ...judging,
    })
    expect(follows).toMatchObject({
      graceSeconds: 0,
      maxRuntimeSeconds: 60,
      judging: { warnExitCodes: [3, 24], ...judging },
    })
  })

  it('publishes the ping URL beside a sourceRef where spec.publish is given', () => {
    const sourceRef = { kind: 'CronJob', name: 'backup' } as const
    expect(declare({ sourceRef, publish: { kind: 'Secret' } }).publish).toMatchObject({
      kind: 'Secret',
      name: 'nightly-backup-heartbeat',
    })
    expect(declare({ sourceRef, publish: { kind: 'ConfigMap' } }).publish).toMatchObject({ kind: 'ConfigMap' })
    expect(declare({ sourceRef, publish: { kind: 'None' } }).publish).toBeNull()
    expect(declare({ periodSeconds: 60, publish: { kind: 'None' } }).publish).toBeNull()
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
    [{}, ['give spec.periodSeconds, spec.schedule or spec.sourceRef']],
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
      ['spec.publish.kind must be one of Secret, ConfigMap, None', 'spec.publish.labels.a must be text'],
    ],
    [{ periodSeconds: 60, suspend: 'yes' }, ['spec.suspend must be true or false']],
  ])('%j', (spec, faults) => {
    expect(faultsOf(spec)).toEqual(faults)
  })

  it.each(['\u200b', '\u3164\u0301', '\u{e0061}'])('a display name of which nothing can be seen: %j', (displayName) => {
    expect(faultsOf({ periodSeconds: 60, displayName })).toEqual([
      'spec.displayName must not be empty: give a name, or leave the field out to use metadata.name',
    ])
  })

  it.each([0x61c, 0x200e, 0x200f, 0x202a, 0x202e, 0x2066, 0x2069])('a display name with U+%s', (code) => {
    expect(faultsOf({ periodSeconds: 60, displayName: `a${String.fromCodePoint(code)}b` })).toEqual([
      expect.stringContaining('change the direction of text'),
    ])
  })
})

describe('a long name', () => {
  const named = (name: string) => {
    const read = readHeartbeatCheck(check({ periodSeconds: 60 }, name))
    if (!read.ok) throw new Error(read.faults.join())
    return read.declaration
  }

  it('gives the check its first 100 characters', () => {
    expect(named('n'.repeat(100)).name).toBe('n'.repeat(100))
    expect(named(`${'n'.repeat(100)}x`).name).toBe('n'.repeat(100))
  })

  it('gives the Secret a name of at most 253 characters, with a hash where it is cut', () => {
    expect(named('n'.repeat(243)).publish?.name).toBe(`${'n'.repeat(243)}-heartbeat`)
    const [one, other] = ['x', 'y'].map((end) => named(`${'n'.repeat(243)}${end}`).publish?.name)
    expect(one).toMatch(/^n{232}-[0-9a-f]{10}-heartbeat$/)
    expect(one).toHaveLength(253)
    expect(other).not.toBe(one)
    // Dots and hyphens at the place of the cut would make it no name.
    expect(named(`${'n'.repeat(230)}.${'-'.repeat(3)}${'n'.repeat(10)}`).publish?.name).toMatch(
      /^n{230}-[0-9a-f]{10}-heartbeat$/,
    )
  })

  it('is the value of a label up to 63 characters, and beyond that its beginning and a hash', () => {
    expect(labelValueOf('n'.repeat(63))).toBe('n'.repeat(63))
    const [one, other] = ['x', 'y'].map((end) => labelValueOf(`${'n'.repeat(63)}${end}`))
    expect(one).toMatch(/^n{52}-[0-9a-f]{10}$/)
    expect(other).not.toBe(one)
  })
})

describe('the grace time of a spec that gives none', () => {
  const graceOf = (spec: HeartbeatCheckSpec) => declare(spec).spec?.graceSeconds

  it.each([
    [10, 60],
    [600, 60],
    [609, 60],
    [610, 61],
    [3_600, 360],
    [35_999, 3_599],
    [36_000, 3_600],
    [86_400, 3_600],
  ])('is, with a period of %i seconds, %i', (periodSeconds, seconds) => {
    expect(graceOf({ periodSeconds })).toBe(seconds)
  })

  it.each([
    ['* * * * *', 60],
    ['*/10 * * * *', 60],
    ['*/15 * * * *', 90],
    ['0 * * * *', 360],
    ['0 */9 * * *', 2_160],
    ['0 2,12 * * *', 3_600],
    ['0 2,11 * * *', 3_240],
    ['0 2 * * *', 3_600],
    ['@weekly', 3_600],
    // Hours apart in working time, a night or a weekend apart otherwise: what counts is the shortest.
    ['0 9-17 * * 1-5', 360],
    // The shortest is the one over midnight, where a day follows.
    ['0 1,21 * * *', 1_440],
    ['0 1,21 * * 1-5', 1_440],
    ['0 1,21 * * 1', 3_600],
    ['0 1,21 31 * *', 3_600],
    ['0 1,21 30,31 * *', 1_440],
    ['0 1,21 28,29 2 *', 1_440],
    ['0 1,21 1 * 0', 1_440],
  ])('is, with the schedule %s, %i', (schedule, seconds) => {
    expect(graceOf({ schedule })).toBe(seconds)
    // Also where clocks change by half an hour.
    expect(graceOf({ schedule, timeZone: 'Australia/Lord_Howe' })).toBe(seconds)
  })

  it('is given up for the one that is given, zero included', () => {
    expect(graceOf({ periodSeconds: 60, graceSeconds: 0 })).toBe(0)
    expect(graceOf({ periodSeconds: 60, graceSeconds: 3_600 })).toBe(3_600)
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
    parseCron(expression, 'UTC', 'kubernetes')
    return true
  } catch {
    return false
  }
}
