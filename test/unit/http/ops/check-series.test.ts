import { describe, expect, it } from 'vitest'
import type { ExportedCheck } from '../../../../src/checks/export-checks.ts'
import { type CheckSeries, createCheckSeries } from '../../../../src/http/ops/check-series.ts'
import { HOUR, NOON, SECOND } from '../../../support/builders.ts'

/** An hourly job that is fine. */
function anExportedCheck(overrides: Partial<ExportedCheck> = {}): ExportedCheck {
  return {
    namespace: 'shop',
    project: 'payments',
    name: 'nightly',
    cluster: null,
    status: 'up',
    downReason: null,
    lastPingAt: NOON,
    lastSuccessAt: NOON,
    deadlineAt: NOON + HOUR + 300 * SECOND,
    lastDurationMs: 1_500,
    periodSeconds: 3_600,
    graceSeconds: 300,
    isRunning: false,
    isFlapping: false,
    isWarning: false,
    isSilenced: false,
    labels: [],
    ...overrides,
  }
}

/** A check of which nothing is known yet. */
const UNKNOWN = {
  status: 'new',
  lastPingAt: null,
  lastSuccessAt: null,
  deadlineAt: null,
  lastDurationMs: null,
  periodSeconds: null,
} as const

function aSeries(...checks: readonly Partial<ExportedCheck>[]): CheckSeries {
  const series = createCheckSeries()
  for (const check of checks) series.add(anExportedCheck(check))
  return series
}

async function piecesOf(series: CheckSeries): Promise<string[]> {
  const pieces: string[] = []
  for await (const piece of series.render()) pieces.push(piece)
  return pieces
}

async function samplesOf(...checks: readonly Partial<ExportedCheck>[]): Promise<string[]> {
  const text = (await piecesOf(aSeries(...checks))).join('')
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

const OF_ONE = 'namespace="shop",project="payments",check="nightly"'

describe('the series of a check', () => {
  it('are, with all that is known', async () => {
    expect(await samplesOf({ isRunning: true, isFlapping: true, isWarning: true, isSilenced: true })).toEqual([
      `heartbeat_check_up{${OF_ONE}} 1`,
      `heartbeat_check_status{${OF_ONE},status="new"} 0`,
      `heartbeat_check_status{${OF_ONE},status="up"} 1`,
      `heartbeat_check_status{${OF_ONE},status="late"} 0`,
      `heartbeat_check_status{${OF_ONE},status="down"} 0`,
      `heartbeat_check_status{${OF_ONE},status="paused"} 0`,
      `heartbeat_check_last_ping_timestamp_seconds{${OF_ONE}} ${NOON / 1_000}`,
      `heartbeat_check_last_success_timestamp_seconds{${OF_ONE}} ${NOON / 1_000}`,
      `heartbeat_check_deadline_timestamp_seconds{${OF_ONE}} ${NOON / 1_000 + 3_900}`,
      `heartbeat_check_last_duration_seconds{${OF_ONE}} 1.5`,
      `heartbeat_check_period_seconds{${OF_ONE}} 3600`,
      `heartbeat_check_grace_seconds{${OF_ONE}} 300`,
      `heartbeat_check_running{${OF_ONE}} 1`,
      `heartbeat_check_flapping{${OF_ONE}} 1`,
      `heartbeat_check_warning{${OF_ONE}} 1`,
      `heartbeat_check_silenced{${OF_ONE}} 1`,
    ])
  })

  it('have the labels of the check that are asked for, behind its name; those that it lacks are left out', async () => {
    const series = createCheckSeries(['label_team', 'label_tier', 'label_zone'])
    for (const [name, labels] of [
      ['a', ['shop', null, 'eu']],
      ['b', [null, 'gold', '']],
      ['c', [null, null, null]],
      ['c', ['other', null, null]],
    ] as const)
      series.add(anExportedCheck({ ...UNKNOWN, name, labels }))
    const text = (await piecesOf(series)).join('')
    const of = (name: string) => `namespace="shop",project="payments",check="${name}"`
    expect(text.split('\n').filter((line) => /^heartbeat_check_(?:running|status.*status="new)/.test(line))).toEqual([
      `heartbeat_check_status{${of('a')},label_team="shop",label_zone="eu",status="new"} 1`,
      `heartbeat_check_status{${of('b')},label_tier="gold",status="new"} 1`,
      `heartbeat_check_status{${of('c')},status="new"} 1`,
      `heartbeat_check_running{${of('a')},label_team="shop",label_zone="eu"} 0`,
      `heartbeat_check_running{${of('b')},label_tier="gold"} 0`,
      `heartbeat_check_running{${of('c')}} 0`,
    ])
    // Labels do not make another check of it: joins by its names stay right.
    expect(series.dropped()).toBe(1)
  })

  it('of a check that follows a CronJob have the outcome of its newest run', async () => {
    const samples = await samplesOf({ lastRunOutcome: 'Failed' })
    expect(samples.filter((sample) => sample.startsWith('heartbeat_check_last_run'))).toEqual([
      `heartbeat_check_last_run_outcome{${OF_ONE},outcome="Running"} 0`,
      `heartbeat_check_last_run_outcome{${OF_ONE},outcome="Succeeded"} 0`,
      `heartbeat_check_last_run_outcome{${OF_ONE},outcome="Warned"} 0`,
      `heartbeat_check_last_run_outcome{${OF_ONE},outcome="Failed"} 1`,
      `heartbeat_check_last_run_outcome{${OF_ONE},outcome="Deleted"} 0`,
    ])
  })

  it('have no sample for what there is not', async () => {
    const samples = await samplesOf(UNKNOWN)
    expect(samples.filter((sample) => !sample.startsWith('heartbeat_check_status'))).toEqual([
      `heartbeat_check_grace_seconds{${OF_ONE}} 300`,
      `heartbeat_check_running{${OF_ONE}} 0`,
      `heartbeat_check_flapping{${OF_ONE}} 0`,
      `heartbeat_check_warning{${OF_ONE}} 0`,
      `heartbeat_check_silenced{${OF_ONE}} 0`,
    ])
  })

  it.each([
    ['new', null],
    ['up', 1],
    ['late', 1],
    ['down', 0],
    ['paused', null],
  ] as const)('say of one that is %s that up is %s, and that of five statuses it has this one', async (status, up) => {
    const samples = await samplesOf({ status })
    expect(samples.filter((sample) => sample.startsWith('heartbeat_check_up'))).toEqual(
      up === null ? [] : [`heartbeat_check_up{${OF_ONE}} ${up}`],
    )
    const statuses = samples.filter((sample) => sample.startsWith('heartbeat_check_status'))
    expect(statuses).toHaveLength(5)
    expect(statuses.filter((sample) => sample.endsWith(' 1'))).toEqual([
      `heartbeat_check_status{${OF_ONE},status="${status}"} 1`,
    ])
  })

  it.each(['missed', 'failed', 'overran'] as const)('say why it is down: %s', async (downReason) => {
    expect(await samplesOf({ status: 'down', downReason })).toContain(
      `heartbeat_check_down{${OF_ONE},reason="${downReason}"} 1`,
    )
  })

  it('have whole seconds for times, and never a deadline before it passes', async () => {
    const samples = await samplesOf({ lastPingAt: NOON + 999, lastSuccessAt: NOON + 1, deadlineAt: NOON + 2_001 })
    const seconds = NOON / 1_000
    expect(samples).toEqual(
      expect.arrayContaining([
        `heartbeat_check_last_ping_timestamp_seconds{${OF_ONE}} ${seconds}`,
        `heartbeat_check_last_success_timestamp_seconds{${OF_ONE}} ${seconds}`,
        `heartbeat_check_deadline_timestamp_seconds{${OF_ONE}} ${seconds + 3}`,
      ]),
    )
  })

  it('name the cluster, where it has a name', async () => {
    expect(await samplesOf({ cluster: 'eu-1' })).toContain(
      'heartbeat_check_grace_seconds{namespace="shop",project="payments",cluster="eu-1",check="nightly"} 300',
    )
  })

  it('escape whatever their labels hold', async () => {
    const samples = await samplesOf({ namespace: 'a"b', project: 'c\\d', cluster: 'e\nf', name: '"\\\n"' })
    expect(samples).toContain(
      'heartbeat_check_grace_seconds{namespace="a\\"b",project="c\\\\d",cluster="e\\nf",check="\\"\\\\\\n\\""} 300',
    )
  })
})

describe('of checks that look alike', () => {
  it('the first is there, and the others are counted', async () => {
    const series = aSeries({ graceSeconds: 1 }, { graceSeconds: 2 }, { graceSeconds: 3 }, { name: 'other' })
    expect(series.dropped()).toBe(2)
    const text = (await piecesOf(series)).join('')
    expect(text.match(/^heartbeat_check_grace_seconds\{.*check="nightly".*$/gm)).toEqual([
      `heartbeat_check_grace_seconds{${OF_ONE}} 1`,
    ])
  })

  it('none is left out that differs in one label', () => {
    for (const other of [{ namespace: 'b' }, { project: 'b' }, { cluster: 'b' }, { name: 'b' }])
      expect(aSeries({}, other, {}).dropped()).toBe(0)
  })
})

describe('the text', () => {
  it('explains each metric once, right before its samples, with the checks in their order', async () => {
    const lines = (
      await piecesOf(aSeries({ project: 'a', name: 'z' }, { name: 'a' }, { name: 'b' }, { ...UNKNOWN, name: 'c' }))
    )
      .join('')
      .split('\n')
    expect(lines.at(-1)).toBe('')
    const metrics: string[] = []
    let checks: string[] = []
    for (const line of lines.slice(0, -1)) {
      const [, help] = /^# HELP (\w+) \S/.exec(line) ?? []
      const [, type] = /^# TYPE (\w+) gauge$/.exec(line) ?? []
      const [, sample, check] = /^(\w+)\{.*check="(\w)".*\} \d+(?:\.\d+)?$/.exec(line) ?? []
      if (help !== undefined) metrics.push(help)
      else if (type !== undefined) checks = []
      else checks.push(check!)
      expect(help ?? type ?? sample, line).toBe(metrics.at(-1))
      expect(checks).toEqual([...checks].sort((one, other) => 'zabc'.indexOf(one) - 'zabc'.indexOf(other)))
    }
    expect(metrics).toHaveLength(14)
    expect(new Set(metrics).size).toBe(14)
  })

  it('explains its metrics where there is no check', async () => {
    expect((await piecesOf(aSeries())).join('').split('\n')).toHaveLength(29)
  })

  it('comes in pieces of whole lines, and is whole with many checks in one project', async () => {
    const names = Array.from({ length: 5_000 }, (_, index) => `job-${index}`)
    const pieces = await piecesOf(aSeries(...names.map((name) => ({ name }))))
    expect(pieces.length).toBeGreaterThan(10)
    for (const piece of pieces) {
      expect(piece.length).toBeLessThan(300_000)
      expect(piece.endsWith('\n')).toBe(true)
    }
    const shown = [...pieces.join('').matchAll(/^heartbeat_check_up\{.*check="([^"]+)"\} 1$/gm)].map(
      ([, name]) => name!,
    )
    expect(shown).toEqual(names)
  })
})
