/** What is recorded of runs, when, and in which order. */

import { describe, expect, it } from 'vitest'
import { unavailable } from '../../../../src/domain/errors.ts'
import { isPending } from '../../../support/until.ts'
import { failed, followed, pod, RUNNING, startRecording, succeeded } from './recording.ts'

describe('what a watch reports', () => {
  it('is recorded once for each start and end, and nothing else of a Job is', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', { startTime: '2026-01-01T02:00:00Z', active: 1 })
    await t.drained()
    t.sources.run('j1', 'backup', RUNNING)
    await t.drained()
    t.sources.run('j1', 'backup', { ...RUNNING, uncountedTerminatedPods: {} })
    t.sources.run('j1', 'backup', succeeded())
    await t.drained()
    t.sources.run('j1', 'backup', { ...succeeded(), ttl: 1 })
    t.sources.drop('j1', 'backup')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start', 'backup j1 success'])
    expect(t.groups).toEqual([1, 1])
    expect(t.reports[1]).toEqual({
      resource: { cluster: 'default', namespace: 'shop', name: 'backup' },
      source: 'backup',
      runId: 'j1',
      job: 'j1',
      entries: [
        { type: 'start', at: Date.UTC(2026, 0, 1, 2), slotAt: Date.UTC(2026, 0, 1) },
        { type: 'success', at: Date.UTC(2026, 0, 1, 2, 5), durationMs: 300_000 },
      ],
      lastRun: {
        job: 'j1',
        startTime: '2026-01-01T02:00:00Z',
        completionTime: '2026-01-01T02:05:00Z',
        outcome: 'Succeeded',
        exitCode: null,
        reason: null,
        message: null,
      },
    })
  })

  it('is recorded in groups, at once', async () => {
    await using t = startRecording(({ follow }) => {
      for (let n = 0; n < 450; n += 1) follow(`s${n}`)
    })
    await t.drained()
    const release = t.hold()
    for (let n = 0; n < 450; n += 1) t.sources.run(`j${n}`, `s${n}`, succeeded())
    release()
    await t.drained()
    expect(t.stored).toHaveLength(450)
    expect(t.groups).toEqual([200, 200, 50])
  })

  it('is recorded for each check that follows the source, and for no other', async () => {
    await using t = startRecording(({ sources, check }) => {
      sources.source('backup')
      sources.source('report')
      check('a', 'backup')
      check('b', 'backup')
      check('c', 'report')
    })
    t.sources.run('j1', 'backup', succeeded())
    t.sources.run('j2', 'unfollowed', succeeded())
    await t.drained()
    expect(t.stored.sort()).toEqual(['a j1 start+success', 'b j1 start+success'])
  })

  it('is recorded once its source is seen, when that comes later', async () => {
    await using t = startRecording(({ check }) => check('backup'))
    t.sources.run('j1', 'backup', succeeded())
    await t.drained()
    expect(t.stored).toEqual([])
    t.sources.source('backup')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+success'])
  })

  it('of a run that is suspended is its start and the suspension, and the next start', async () => {
    await using t = followed('backup')
    const suspended = { failed: 1, conditions: [{ type: 'Suspended', status: 'True' }] }
    t.sources.run('j1', 'backup', RUNNING)
    await t.drained()
    // Never started.
    t.sources.run('j2', 'backup', {})
    t.sources.run('j2', 'backup', suspended)
    // Before its start was recorded.
    t.sources.run('j3', 'backup', RUNNING)
    t.sources.run('j3', 'backup', suspended)
    t.sources.run('j1', 'backup', suspended)
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start', 'backup j3 start+suspend', 'backup j1 suspend'])
    expect(t.reports.at(-1)!.lastRun).toMatchObject({
      outcome: 'Running',
      reason: 'JobSuspended',
      message: 'Job j1 is suspended: its queue starts it, or set spec.suspend to false',
    })
    const startTime = '2026-01-01T03:00:00Z'
    t.sources.run('j1', 'backup', { ...RUNNING, startTime })
    await t.drained()
    expect(t.reports.at(-1)!.entries).toMatchObject([{ type: 'start', at: Date.parse(startTime) }])
  })

  it('of a run that is suspended when it is seen first is compared with what is recorded', async () => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.hasRun('j1', 'backup', { conditions: [{ type: 'Suspended', status: 'True' }] })
    })
    await t.drained()
    expect(t.stored).toEqual(['backup j1 suspend'])
  })

  it('of a run that was deleted before it ended is its start and a log at the time of the deletion', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', RUNNING)
    t.sources.run('j2', 'backup', {})
    await t.drained()
    t.sources.drop('j1', 'backup')
    t.sources.drop('j2', 'backup')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start', 'backup j1 log', 'backup j2 log'])
    const { entries, lastRun } = t.reports[1]!
    expect(entries.at(-1)).toEqual({ type: 'log', at: t.clock.now(), body: 'Job j1 was deleted before it ended' })
    expect(lastRun).toMatchObject({ job: 'j1', outcome: 'Deleted', completionTime: null })
  })
})

describe('a run that was deleted while its CronJob replaces such runs', () => {
  const replacing = () => startRecording(({ follow }) => follow('backup', { concurrencyPolicy: 'Replace' }))
  const logOf = (t: ReturnType<typeof replacing>, job: string) =>
    t.reports
      .filter((report) => report.job === job)
      .flatMap(({ entries }) => entries)
      .find(({ type }) => type === 'log')
  const [body, overran] = ['Job a was deleted before it ended', 'Job a had not ended when Job b replaced it']

  /** Once no check waits for a replacement. */
  async function settled(t: ReturnType<typeof replacing>): Promise<void> {
    for (let times = 0; (await t.drained()).length > 0; times += 1) expect(times).toBeLessThan(100)
  }

  it('overran if the next one follows at once, which is recorded behind it', async () => {
    await using t = replacing()
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.clock.advance(60_000)
    const deletedAt = t.clock.now()
    t.sources.drop('a', 'backup')
    await t.clock.advance(1_999)
    expect(await t.drained()).toEqual(['backup'])
    t.sources.scheduled('b', 'backup', deletedAt, RUNNING)
    await settled(t)
    expect(t.stored).toEqual(['backup a start', 'backup a log', 'backup b start'])
    expect(logOf(t, 'a')).toEqual({ type: 'log', at: deletedAt, body, overran })
    expect(t.reports[1]!.lastRun).toMatchObject({ outcome: 'Deleted', message: overran })
  })

  it('overran if the slot of the next one comes within five seconds, by clocks that differ', async () => {
    await using t = replacing()
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.clock.advance(60_000)
    t.sources.drop('a', 'backup')
    t.sources.scheduled('b', 'backup', t.clock.now() + 5_000, RUNNING)
    await t.drained()
    expect(logOf(t, 'a')).toMatchObject({ overran })
  })

  it.each([
    ['no other one follows for two seconds', () => {}],
    [
      'a person creates the other one',
      (t: ReturnType<typeof replacing>) => t.sources.scheduled('b', 'backup', t.clock.now(), {}, true),
    ],
    [
      'the other one is not of a later slot',
      (t: ReturnType<typeof replacing>) => t.sources.scheduled('b', 'backup', Date.UTC(2026, 0, 2)),
    ],
    [
      'the slot of the other one comes more than five seconds after the deletion',
      (t: ReturnType<typeof replacing>) => t.sources.scheduled('b', 'backup', t.clock.now() + 5_001),
    ],
    [
      'the other one is of another CronJob',
      (t: ReturnType<typeof replacing>) => t.sources.scheduled('b', 'other', t.clock.now()),
    ],
  ])('is only a log if %s', async (_, happens) => {
    await using t = replacing()
    t.sources.source('other', { concurrencyPolicy: 'Replace' })
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.clock.advance(60_000)
    t.sources.drop('a', 'backup')
    happens(t)
    await t.clock.advance(2_000)
    t.sources.scheduled('late', 'backup', t.clock.now(), RUNNING)
    await settled(t)
    expect(logOf(t, 'a')).not.toHaveProperty('overran')
  })

  it.each([
    ['has not started', {}, false, 'Replace'],
    ['was made by a person', RUNNING, true, 'Replace'],
    ['is of a CronJob that replaces none', RUNNING, false, 'Allow'],
  ])('is only a log, at once, if it %s', async (_, status, isManual, concurrencyPolicy) => {
    await using t = replacing()
    t.sources.source('backup', { concurrencyPolicy })
    t.sources.scheduled('a', 'backup', t.clock.now(), status, isManual)
    await t.clock.advance(60_000)
    t.sources.scheduled('b', 'backup', t.clock.now())
    t.sources.drop('a', 'backup')
    await t.drained()
    expect(logOf(t, 'a')).toMatchObject({ body })
    expect(logOf(t, 'a')).not.toHaveProperty('overran')
  })

  it('overran only for a check without a limit of its own, until it has run for that long', async () => {
    await using t = replacing()
    const startedAt = t.clock.now()
    t.check('long', 'backup', {}, { maxRuntimeSeconds: 7_200 })
    t.check('short', 'backup', {}, { maxRuntimeSeconds: 3_600 })
    t.sources.scheduled('a', 'backup', startedAt, { ...RUNNING, startTime: new Date(startedAt).toISOString() })
    await t.clock.advance(3_600_000)
    t.sources.drop('a', 'backup')
    t.sources.scheduled('b', 'backup', t.clock.now(), RUNNING)
    await t.drained()
    const logs = t.reports.flatMap(({ resource, job, entries, lastRun }) =>
      entries
        .filter(({ type }) => job === 'a' && type === 'log')
        .map((log) => [resource.name, 'overran' in log, lastRun?.message]),
    )
    expect(logs.sort()).toEqual([
      ['backup', true, overran],
      ['long', false, overran],
      ['short', true, overran],
    ])
  })

  it.each([
    ['a moment before', 7_199_999, false],
    ['once', 7_200_000, true],
  ])('overran %s its own limit is reached: %s', async (_, ageMs, expected) => {
    await using t = replacing()
    t.check('backup', 'backup', {}, { maxRuntimeSeconds: 7_200 })
    const startTime = new Date(t.clock.now()).toISOString()
    t.sources.scheduled('a', 'backup', t.clock.now(), { ...RUNNING, startTime })
    await t.clock.advance(ageMs)
    t.sources.drop('a', 'backup')
    t.sources.scheduled('b', 'backup', t.clock.now(), RUNNING)
    await t.drained()
    expect(logOf(t, 'a')).toMatchObject({ body })
    expect('overran' in logOf(t, 'a')!).toBe(expected)
  })

  it('overran too if the next leader reports it', async () => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup', { concurrencyPolicy: 'Replace' })
      sources.scheduled('a', 'backup', Date.UTC(2026, 0, 1), RUNNING)
      sources.drop('a', 'backup')
      sources.scheduled('b', 'backup', Date.UTC(2026, 0, 2), RUNNING)
    })
    await t.drained()
    expect(logOf(t, 'a')).toMatchObject({ overran })
  })

  it('overran too if a comparison began before the next one came, and ends after it', async () => {
    await using t = replacing()
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.drained()
    await t.clock.advance(60_000)
    const release = t.hold()
    t.sources.drop('a', 'backup')
    t.runs.follow('shop/backup')
    await t.clock.settle()
    t.sources.scheduled('b', 'backup', t.clock.now(), RUNNING)
    await t.clock.settle()
    release()
    await settled(t)
    expect(logOf(t, 'a')).toMatchObject({ overran })
    expect(t.stored).toEqual(['backup a start', 'backup a log', 'backup b start'])
  })

  it('keeps the deadlines of its own checks waiting for the next one, and no others', async () => {
    await using t = replacing()
    t.sources.source('other')
    t.check('other')
    t.check('second', 'backup')
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.drained()
    t.sources.drop('a', 'backup')
    t.sources.run('o', 'other', RUNNING)
    expect((await t.drained()).sort()).toEqual(['backup', 'second'])
    expect(t.stored).toContain('other o start')
    await t.clock.advance(2_000)
    await settled(t)
    expect(t.stored.filter((one) => one.endsWith('a log')).sort()).toEqual(['backup a log', 'second a log'])
  })

  it('is stored with what is known when the term ends', async () => {
    await using t = replacing()
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.drained()
    t.sources.drop('a', 'backup')
    await t.runs.stop(5_000)
    expect(t.stored).toEqual(['backup a start', 'backup a log'])
  })
})

const firstLineOf = ({ entries }: { readonly entries: readonly object[] }) =>
  (entries.at(-1) as { body: string }).body.split('\n')[0]

describe('a failure', () => {
  it('waits for the pods that it counts: their watch may be a moment behind', async () => {
    await using t = followed('backup')
    await t.drained()
    t.sources.pod(pod('a', 3), 'j1')
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 2))
    await t.clock.advance(999)
    expect(t.stored).toEqual([])
    t.sources.pod(pod('b', 4), 'other')
    t.sources.pod(pod('b', 4), 'j1')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+fail'])
    expect(firstLineOf(t.reports[0]!)).toBe('container main failed (exit code 4)')
    expect(t.reports[0]!.lastRun).toMatchObject({ outcome: 'Failed', exitCode: 4, reason: 'Error' })
  })

  it('is recorded after a second without them, and at once where it counts none', async () => {
    await using t = followed('backup', 'report')
    await t.drained()
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 1))
    t.sources.run('j2', 'report', failed())
    await t.clock.advance(999)
    expect(t.stored).toEqual(['report j2 fail'])
    await t.clock.advance(1)
    await t.drained()
    expect(t.stored).toEqual(['report j2 fail', 'backup j1 start+fail'])
    expect(firstLineOf(t.reports[1]!)).toBe('Job j1 failed: Why: words')
  })

  it('holds the last lines of its container where they may be read', async () => {
    const asked: unknown[] = []
    const logs = {
      async read(namespace: string, container: object) {
        asked.push(namespace, container)
        return 'disk full'
      },
    }
    await using t = startRecording(({ follow }) => follow('backup'), { logs })
    await t.drained()
    t.sources.pod(pod('a', 3), 'j1')
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 1))
    t.sources.run('j2', 'backup', failed())
    await t.drained()
    expect(asked).toEqual(['shop', { pod: 'a', name: 'main', isRestarted: false }])
    const bodies = t.reports.map(({ entries }) => (entries.at(-1) as { body: string }).body)
    expect(bodies.filter((body) => body.endsWith('--- last lines of container main\ndisk full'))).toHaveLength(1)
  })

  it('is not recorded before by a comparison at the same time', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 1))
    t.runs.follow('shop/backup')
    await t.clock.advance(500)
    expect(t.stored).toEqual([])
    t.sources.pod(pod('a', 3), 'j1')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+fail'])
    expect(firstLineOf(t.reports[0]!)).toBe('container main failed (exit code 3)')
  })

  it('is recorded before what its source reports later: a later success must not hide its alert', async () => {
    await using t = followed('backup', 'report')
    await t.drained()
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 1))
    t.sources.run('j2', 'backup', succeeded('2026-01-01T02:05:01Z'))
    t.sources.run('j3', 'backup', failed('2026-01-01T02:05:02Z', 1))
    t.sources.pod(pod('a', 3), 'j3')
    t.sources.run('j4', 'report', succeeded())
    // A list shows this one.
    t.sources.run('j5', 'backup', succeeded('2026-01-01T02:05:03Z'), true)
    await t.clock.advance(900)
    expect(t.stored).toEqual(['report j4 start+success'])
    await t.clock.advance(100)
    await t.drained()
    expect(t.stored.slice(1)).toEqual([
      'backup j1 start+fail',
      'backup j2 start+success',
      'backup j3 start+fail',
      'backup j5 start+success',
    ])
  })

  it('is recorded before the end of an older run that ends later, while the database does not serve', async () => {
    await using t = followed('backup')
    await t.drained()
    const release = t.hold()
    t.sources.run('j0', 'backup', RUNNING)
    await t.clock.settle()
    t.sources.run('j1', 'backup', RUNNING)
    t.sources.run('j2', 'backup', failed('2026-01-01T02:05:00Z'))
    await t.clock.settle()
    t.sources.run('j1', 'backup', succeeded('2026-01-01T02:05:01Z'))
    release()
    await t.drained()
    expect(t.stored).toEqual(['backup j0 start', 'backup j2 fail', 'backup j1 start+success'])
  })

  it('counts as not recorded until its pods are waited for', async () => {
    await using t = followed('backup')
    await t.drained()
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 1))
    const drained = t.drained()
    await t.clock.advance(900)
    expect(await isPending(drained)).toBe(true)
    await t.clock.advance(100)
    await drained
    expect(t.stored).toEqual(['backup j1 start+fail'])
  })
})

describe('a database that does not serve', () => {
  it('loses nothing: all is recorded when it serves again, what is newer in the place of what is older', async () => {
    await using t = followed('backup')
    await t.drained()
    t.fail(new Error('away'))
    t.sources.run('j1', 'backup', RUNNING)
    await t.clock.advance(5_000)
    t.sources.run('j1', 'backup', succeeded())
    t.sources.run('j2', 'backup', RUNNING)
    const drained = t.drained()
    await t.clock.advance(5_000)
    expect([await isPending(drained), t.stored]).toEqual([true, []])
    t.fail(null)
    await t.clock.advance(2_000)
    await drained
    expect(t.stored).toEqual(['backup j1 start+success', 'backup j2 start'])
    expect(t.said).toEqual(['what Jobs report could not be recorded; it is tried again'])
  })

  it('that rejects one report again and again holds up no other check, and the deadlines for seconds', async () => {
    await using t = followed('backup', 'report')
    t.reject(({ runId }) => runId === 'j1')
    t.sources.run('j1', 'backup', succeeded())
    t.sources.run('j2', 'backup', succeeded())
    t.sources.run('j3', 'report', succeeded())
    await t.clock.settle()
    expect(t.stored.toSorted()).toEqual(['backup j2 start+success', 'report j3 start+success'])
    const drained = t.drained()
    await t.clock.advance(2_999)
    expect([await isPending(drained), t.outcomes.filter((outcome) => outcome === 'failed').length]).toEqual([true, 4])
    await t.clock.advance(1)
    await drained
    expect(t.outcomes.filter((outcome) => outcome === 'failed')).toHaveLength(5)
    expect(t.said).toEqual(['what a Job reports was rejected again and again; it is tried again once a minute'])
  })

  it('that rejects a report gets it again each minute, though its Job is gone, and logs that once', async () => {
    await using t = followed('backup')
    t.reject(({ runId }) => runId === 'j1')
    t.sources.run('j1', 'backup', failed())
    t.sources.drop('j1', 'backup')
    t.sources.forget()
    await t.clock.advance(180_000)
    expect(t.outcomes).toEqual(Array(8).fill('failed'))
    expect(t.said).toHaveLength(1)
    t.reject(() => false)
    await t.clock.advance(60_000)
    expect(t.stored).toEqual(['backup j1 fail'])
    await t.clock.advance(120_000)
    expect(t.outcomes).toHaveLength(9)
  })

  it('in which another transaction holds a check loses no report of it, however long, and keeps their order', async () => {
    await using t = followed('backup', 'report')
    t.lock(({ resource }) => resource.name === 'backup')
    t.sources.run('j1', 'backup', failed())
    await t.clock.settle()
    t.sources.run('j2', 'backup', succeeded())
    t.sources.run('j3', 'report', succeeded())
    // The deadlines of other checks do not wait.
    expect(await t.drained()).toEqual(['backup'])
    expect([t.stored, t.hasty]).toEqual([['report j3 start+success'], []])
    await t.clock.advance(30_000)
    // 200, 400, 800, 1,600 ms, then every 2 s; a known one keeps no other waiting.
    expect(t.groups.length).toBeLessThan(25)
    expect(t.hasty).toHaveLength(t.groups.length - 2)
    expect([await t.drained(), t.said]).toEqual([['backup'], []])
    await t.clock.advance(32_000)
    expect(t.said).toEqual([expect.stringContaining('another transaction has held the row of a check for a minute')])
    t.lock(() => false)
    await t.clock.advance(2_000)
    expect(t.stored).toEqual(['report j3 start+success', 'backup j1 fail', 'backup j2 start+success'])
    expect([await t.drained(), t.said.length]).toEqual([[], 1])
  })

  it('that rejects a report does not count the attempts while it did not serve', async () => {
    await using t = followed('backup')
    t.fail(new Error('away'))
    t.sources.run('j1', 'backup', succeeded())
    await t.clock.advance(20_000)
    t.fail(null)
    t.reject(() => true)
    await t.clock.advance(2_100)
    t.reject(() => false)
    await t.clock.advance(1_000)
    expect([t.stored, t.said.length]).toEqual([['backup j1 start+success'], 1])
  })
})

describe('a term', () => {
  it('begins with what was not recorded, the oldest first, and sends nothing again', async () => {
    await using t = startRecording(({ sources, follow, recorded }) => {
      for (const name of ['a', 'b', 'c']) {
        follow(name)
        sources.hasRun(`${name}-3`, name, RUNNING)
        sources.hasRun(`${name}-2`, name, failed('2026-01-01T03:00:00Z', 1))
        sources.hasRun(`${name}-1`, name, succeeded())
        sources.hasRun(`${name}-0`, name, {})
      }
      for (const type of ['start', 'success']) recorded.add(`b b-1:${type}`)
      recorded.add('b b-2:start')
    })
    await t.drained()
    expect(t.stored.filter((text) => text.startsWith('a'))).toEqual([
      'a a-3 start',
      'a a-1 start+success',
      'a a-2 start+fail',
    ])
    expect(t.stored.filter((text) => text.startsWith('b'))).toEqual(['b b-3 start', 'b b-2 fail'])
    expect(t.stored.filter((text) => text.startsWith('c'))).toHaveLength(3)
    expect(t.outcomes).not.toContain('repeated')
  })

  it('takes what ended before the check was created in the other order: its last run decides whether it begins up', async () => {
    await using t = startRecording(({ sources, check }) => {
      sources.source('backup')
      check('backup', 'backup', { createdAt: Date.UTC(2026, 0, 1, 4, 30) })
      for (const hour of [4, 2, 5, 3]) sources.hasRun(`at-${hour}`, 'backup', failed(`2026-01-01T0${hour}:00:00Z`, 1))
      sources.hasRun('at-6', 'backup', failed('2026-01-01T06:00:00Z', 1))
    })
    await t.drained()
    expect(t.reports.map(({ job }) => job)).toEqual(['at-4', 'at-3', 'at-2', 'at-5', 'at-6'])
  })

  it('reads the log of what failed before it began and still has its pod, and reports that to all that follow', async () => {
    const asked: string[] = []
    const logs = {
      async read(_: string, { pod }: { readonly pod: string }) {
        asked.push(pod)
        return 'disk full'
      },
    }
    await using t = startRecording(
      ({ sources, check }) => {
        sources.source('backup')
        for (const name of ['a', 'b']) check(name, 'backup')
        sources.hasRun('with-pod', 'backup', failed('2026-01-01T02:05:00Z', 1))
        sources.pod(pod('x', 3), 'with-pod')
        sources.hasRun('without-pod', 'backup', failed('2026-01-01T03:05:00Z', 1))
        sources.hasRun('gone', 'backup', failed('2026-01-01T04:05:00Z', 1))
        sources.pod(pod('y', 3), 'gone')
        sources.drop('gone', 'backup')
      },
      { logs },
    )
    await t.drained()
    expect(asked).toEqual(['x'])
    expect(t.stored.filter((text) => text.startsWith('a'))).toEqual([
      'a with-pod start+fail',
      'a without-pod start+fail',
      'a gone start+fail',
    ])
    expect(t.stored.filter((text) => text.startsWith('b'))).toHaveLength(3)
    const bodies = t.reports.map(({ entries }) => (entries.at(-1) as { body: string }).body)
    expect(bodies.filter((body) => body.endsWith('\ndisk full'))).toHaveLength(2)
  })

  it('waits for the pods of a failure that a list shows', async () => {
    await using t = followed('backup')
    await t.drained()
    t.sources.pod(pod('a', 3), 'j1')
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 2), true)
    await t.clock.advance(500)
    expect(t.stored).toEqual([])
    t.sources.pod(pod('b', 4), 'j1')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+fail'])
    expect(firstLineOf(t.reports[0]!)).toBe('container main failed (exit code 4)')
  })

  it('waits for the pods of a hundred failures at once, and records others with what is known', async () => {
    await using t = startRecording(({ sources, follow }) => {
      for (let n = 0; n < 102; n += 1) {
        follow(`s${n}`)
        sources.hasRun(`j${n}`, `s${n}`, failed('2026-01-01T02:05:00Z', 2))
        sources.pod(pod(`p${n}`, 3), `j${n}`)
      }
    })
    await t.clock.advance(500)
    expect(t.stored).toHaveLength(2)
    await t.clock.advance(500)
    await t.drained()
    expect(t.stored).toHaveLength(102)
  })

  it('waits until the caches are filled', async () => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.sync()
    })
    t.sources.hasRun('j1', 'backup', succeeded())
    const drained = t.drained()
    await t.clock.advance(60_000)
    expect(t.stored).toEqual([])
    t.sources.sync()
    await t.clock.advance(100)
    await drained
    expect(t.stored).toEqual(['backup j1 start+success'])
  })

  it('reports what ended and was deleted while the last leader was ending', async () => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.hasRun('ended', 'backup', succeeded())
      sources.drop('ended', 'backup')
      sources.hasRun('cut', 'backup', RUNNING)
      sources.drop('cut', 'backup')
      sources.hasRun('unseen', 'backup', RUNNING)
      sources.drop('unseen', 'backup', true)
    })
    await t.drained()
    expect(t.stored.sort()).toEqual(['backup cut start+log', 'backup ended start+success'])
    expect(t.abandoned).toEqual(['backup unseen'])
  })

  it('closes the open runs whose Job is gone, and only after the caches were confirmed', async () => {
    await using t = startRecording(({ sources, check }) => {
      sources.source('backup')
      sources.hasRun('there', 'backup', RUNNING)
      check('backup', 'backup', { openJobRuns: ['gone', 'there', 'gone-too'] })
      check('other', 'none', { openJobRuns: ['gone'] })
    })
    await t.runs.whenRecorded()
    expect(t.abandoned).toEqual([])
    await t.drained()
    expect(t.abandoned).toEqual(['backup gone,gone-too', 'other gone'])
    await t.drained()
    expect(t.abandoned).toHaveLength(2)
  })

  it('closes the runs of other checks where one cannot be read or is held, and tries those again', async () => {
    await using t = startRecording(({ check }) => {
      for (const name of ['unreadable', 'held', 'fine']) check(name, name, { openJobRuns: ['gone'] })
    })
    t.abandon((name) => {
      if (name === 'unreadable') throw new Error('what is stored cannot be read')
      return name === 'held' ? 'held' : 'closed'
    })
    await t.drained()
    expect(await t.drained()).toEqual(['unreadable', 'held'])
    expect(t.abandoned).toEqual(['fine gone'])
    expect(t.said).toEqual(['runs whose Jobs are gone could not be closed; it is tried again'])
    t.abandon(() => 'closed')
    await t.drained()
    expect(await t.drained()).toEqual([])
    expect(t.abandoned.toSorted()).toEqual(['fine gone', 'held gone', 'unreadable gone'])
  })

  it('closes nothing as done while the database does not serve', async () => {
    await using t = startRecording(({ check }) => check('backup', 'backup', { openJobRuns: ['gone'] }))
    await t.clock.settle()
    t.fail(unavailable(new Error('away')))
    await expect(t.drained()).rejects.toThrow()
    t.fail(null)
    await t.drained()
    expect([t.abandoned, t.said]).toEqual([['backup gone'], []])
  })

  it('does not replace what is newer by what it has compared before', async () => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.hasRun('j1', 'backup', RUNNING)
    })
    const release = t.hold()
    await t.clock.settle()
    t.sources.run('j1', 'backup', succeeded())
    release()
    await t.drained()
    expect(t.stored.join()).toContain('success')
    expect(t.reports.at(-1)?.lastRun?.outcome).toBe('Succeeded')
  })

  it('that ends stores what waits, and hears no more', async () => {
    const t = followed('backup')
    await t.drained()
    const release = t.hold()
    t.sources.run('j1', 'backup', succeeded())
    await t.clock.settle()
    t.sources.run('j2', 'backup', succeeded())
    const stopped = t.runs.stop(500)
    t.sources.run('j3', 'backup', succeeded())
    release()
    await stopped
    expect(t.stored).toEqual(['backup j1 start+success', 'backup j2 start+success'])
    expect(t.clock.wakeTimes()).toEqual([])
  })

  it('that ends stores a failure whose pods or log it waits for, with what is known: its Job may be gone', async () => {
    const { promise: read } = Promise.withResolvers<null>()
    const logs = {
      read: (_: unknown, __: unknown, signal: AbortSignal) =>
        Promise.race([read, new Promise<null>((resolve) => signal.addEventListener('abort', () => resolve(null)))]),
    }
    const t = startRecording(({ follow }) => follow('backup'), { logs })
    await t.drained()
    t.sources.pod(pod('a', 3), 'with-log')
    t.sources.run('with-log', 'backup', failed('2026-01-01T02:05:00Z', 1))
    t.sources.drop('with-log', 'backup')
    t.sources.run('without-pod', 'backup', failed('2026-01-01T02:06:00Z', 1))
    t.sources.drop('without-pod', 'backup')
    await t.clock.settle()
    expect(t.stored).toEqual([])
    await t.runs.stop(500)
    expect(t.stored.toSorted()).toEqual(['backup with-log start+fail', 'backup without-pod start+fail'])
    expect(t.reports.map(firstLineOf).toSorted()).toEqual([
      'Job without-pod failed: Why: words',
      'container main failed (exit code 3)',
    ])
    expect(t.clock.wakeTimes()).toEqual([])
  })

  it('that ends while the database does not serve stops trying after its time', async () => {
    const t = followed('backup')
    await t.drained()
    t.fail(new Error('away'))
    t.sources.run('j1', 'backup', succeeded())
    await t.clock.settle()
    const stopped = t.runs.stop(500)
    await t.clock.advance(499)
    expect(await isPending(stopped)).toBe(true)
    await t.clock.advance(1)
    await stopped
    expect(t.stored).toEqual([])
    expect(t.clock.wakeTimes()).toEqual([])
  })

  it('that ends finds out nothing more', async () => {
    const t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.sync()
    })
    t.sources.hasRun('j1', 'backup', succeeded())
    await t.clock.settle()
    await t.runs.stop(500)
    expect([t.stored, t.clock.wakeTimes()]).toEqual([[], []])
  })
})

describe('what only a list shows', () => {
  it('is compared with what is recorded', async () => {
    await using t = followed('backup')
    await t.drained()
    t.sources.run('j1', 'backup', succeeded(), true)
    t.sources.run('j2', 'backup', RUNNING)
    await t.drained()
    expect(t.stored.sort()).toEqual(['backup j1 start+success', 'backup j2 start'])
    t.sources.run('j2', 'backup', succeeded('2026-01-01T04:00:00Z'), true)
    await t.drained()
    expect(t.stored.at(-1)).toBe('backup j2 success')
  })

  it('of a run that is gone closes it without a record: whether it ended is not known', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', RUNNING)
    await t.drained()
    t.sources.drop('j1', 'backup', true)
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start'])
    expect(t.abandoned).toEqual(['backup j1'])
  })
})

describe('the last success of a CronJob', () => {
  const lastSuccessfulTime = '2026-01-01T02:05:00Z'

  it.each([
    ['is a success without a run where no Job shows it', undefined, true],
    ['is that of a Job which shows it', succeeded(), false],
    ['is older than that of a Job', succeeded('2026-01-01T03:00:00Z'), false],
    ['is newer than that of a Job', succeeded('2026-01-01T01:00:00Z'), true],
    ['is not that of a Job which failed', failed(), true],
  ])('%s', async (_what, status, isReported) => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup', { lastSuccessfulTime })
      if (status !== undefined) sources.hasRun('j1', 'backup', status)
    })
    await t.runs.whenRecorded()
    const alone = () => t.reports.filter(({ runId }) => runId === null)
    // Before the caches were confirmed, its Job may be on the way.
    expect(alone()).toEqual([])
    await t.drained()
    await t.drained()
    expect(alone()).toEqual(
      isReported
        ? [
            {
              resource: { cluster: 'default', namespace: 'shop', name: 'backup' },
              source: 'backup',
              runId: null,
              job: null,
              entries: [{ type: 'success', at: Date.parse(lastSuccessfulTime), durationMs: null }],
              lastRun: null,
            },
          ]
        : [],
    )
  })

  it('that a Job of a moment ago has shown is not another one', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', succeeded())
    t.sources.drop('j1', 'backup')
    t.sources.source('backup', { lastSuccessfulTime })
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+success'])
  })

  it('that changes after the caches were confirmed waits for the next confirmation', async () => {
    await using t = followed('backup')
    await t.drained()
    await t.clock.advance(1_000)
    t.sources.source('backup', { lastSuccessfulTime })
    await t.runs.whenRecorded()
    expect(t.stored).toEqual([])
    await t.drained()
    expect(t.stored).toEqual(['backup null success'])
  })

  it('that changes once more after the caches were confirmed waits for the next confirmation', async () => {
    await using t = followed('backup')
    await t.drained()
    t.sources.source('backup', { lastSuccessfulTime: '2026-01-01T01:05:00Z' })
    t.sources.confirmed()
    await t.clock.advance(1_000)
    t.sources.source('backup', { lastSuccessfulTime })
    await t.runs.whenRecorded()
    t.sources.run('j1', 'backup', succeeded(lastSuccessfulTime))
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+success'])
  })
})

describe('a CronJob that is deleted and created again', () => {
  it('has no runs of the one before it: what they report is not recorded, by a watch or by a comparison', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', RUNNING)
    t.sources.run('j2', 'backup', RUNNING)
    await t.drained()
    t.sources.recreate('backup')
    t.sources.run('j1', 'backup', succeeded())
    t.sources.run('j3', 'backup', succeeded())
    t.sources.drop('j3', 'backup')
    t.sources.drop('j2', 'backup')
    t.runs.follow('shop/backup')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start', 'backup j2 start'])
    expect(t.abandoned.join().split(',').sort()).toEqual(['backup j1', 'j2', 'j3'])
  })

  it('has its own last success, whatever a run of the one before it shows', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', succeeded('2026-01-01T03:00:00Z'))
    await t.drained()
    t.sources.drop('j1', 'backup')
    t.sources.recreate('backup')
    t.sources.source('backup', {
      metadata: { namespace: 'shop', name: 'backup', uid: 'new-backup', resourceVersion: '2' },
      lastSuccessfulTime: '2026-01-01T02:05:00Z',
    })
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+success', 'backup null success'])
  })

  it('keeps its runs while it is only deleted: they are deleted with it', async () => {
    await using t = followed('backup')
    t.sources.run('j1', 'backup', RUNNING)
    await t.drained()
    t.sources.dropSource('backup')
    t.sources.drop('j1', 'backup')
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start', 'backup j1 log'])
  })
})

describe('a check', () => {
  it('that begins to follow a source gets what its runs have reported before', async () => {
    await using t = startRecording(({ sources, check }) => {
      sources.source('backup')
      sources.hasRun('j1', 'backup', succeeded())
      check('backup', 'backup', null)
    })
    await t.drained()
    t.sources.run('j2', 'backup', RUNNING)
    await t.drained()
    expect([t.stored, t.outcomes]).toEqual([[], ['unknown']])
    t.check('backup')
    t.runs.follow('shop/backup')
    await t.drained()
    expect(t.stored).toEqual(['backup j2 start', 'backup j1 start+success'])
  })

  it('that does not exist yet is looked for again after a minute', async () => {
    await using t = startRecording(({ sources, check }) => {
      sources.source('backup')
      check('backup', 'backup', null)
    })
    t.sources.run('j1', 'backup', succeeded())
    await t.drained()
    t.check('backup')
    await t.clock.advance(59_000)
    expect(t.stored).toEqual([])
    await t.clock.advance(1_000)
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+success'])
  })
})
