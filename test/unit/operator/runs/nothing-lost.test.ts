/** What happens at the edges of the recorder of runs: nothing is lost, nothing waits for ever, and nothing counts as recorded before it is. */

import { describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { isPending } from '../../../support/until.ts'
import { failed, followed, pod, type Recording, RUNNING, startRecording, succeeded } from './recording.ts'

/** HeartbeatChecks that a list shows later. */
function listedLater(prepare: Parameters<typeof startRecording>[0]) {
  const metadata = { namespace: 'shop', name: 'backup' }
  const object = { metadata, spec: { sourceRef: { kind: 'CronJob', name: 'backup' } } } as HeartbeatCheck
  const state = { keys: [] as readonly string[], hasTried: true }
  const t = startRecording(prepare, {
    checks: {
      get: (key) => (state.keys.includes(key) ? object : undefined),
      followers: () => state.keys,
      followersOf: () => state.keys,
      hasTried: () => state.hasTried,
    },
  })
  return { t, state }
}

const lastSuccessfulTime = '2026-01-01T02:05:00Z'

describe('HeartbeatChecks that are listed late', () => {
  it('are waited for: without them nothing counts as recorded', async () => {
    const { t, state } = listedLater(({ sources, follow }) => {
      follow('backup', { lastSuccessfulTime })
      sources.hasRun('j1', 'backup', failed('2026-01-01T01:00:00Z'))
    })
    await using _ = t
    state.hasTried = false
    const drained = t.drained()
    await t.clock.advance(60_000)
    expect(await isPending(drained)).toBe(true)
    Object.assign(state, { keys: ['shop/backup'], hasTried: true })
    await t.clock.advance(100)
    await drained
    expect(t.stored).toEqual(['backup j1 fail', 'backup null success'])
  })

  it('get what a watch reported before', async () => {
    const { t, state } = listedLater(({ follow }) => follow('backup'))
    await using _ = t
    await t.drained()
    t.sources.run('j1', 'backup', succeeded())
    await t.drained()
    expect(t.stored).toEqual([])
    state.keys = ['shop/backup']
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+success'])
  })

  it('get the last success of a CronJob whose Job is gone', async () => {
    const { t, state } = listedLater(({ follow }) => {
      follow('backup', { lastSuccessfulTime })
    })
    await using _ = t
    await t.drained()
    state.keys = ['shop/backup']
    await t.drained()
    expect(t.stored).toEqual(['backup null success'])
  })
})

describe('news above the limit', () => {
  /** Leaves room for so many reports: another transaction locks a check, and its news wait. */
  async function fill(t: Recording, room: number): Promise<void> {
    const count = (40_000 - room) / 10
    for (let n = 0; n < count; n += 1) t.sources.run(`big-${n}`, 'big', failed())
    await t.clock.settle()
  }

  it('are found in the caches, though older news of the run wait', async () => {
    await using t = followed('big', 'backup')
    await t.drained()
    t.lock(() => true)
    await fill(t, 10)
    for (const name of ['j0', 'j1']) t.sources.run(name, 'backup', RUNNING)
    await t.clock.settle()
    t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z', 1))
    await t.clock.advance(10_000)
    t.lock(() => false)
    await t.clock.advance(10_000)
    await t.drained()
    expect(t.stored.filter((text) => text.startsWith('backup'))).toEqual(['backup j0 start', 'backup j1 start+fail'])
  })

  it('are recorded although another transaction locked their check while they were looked for', async () => {
    await using t = followed('big', 'backup')
    await t.drained()
    t.lock(() => true)
    await fill(t, 0)
    t.sources.run('j1', 'backup', failed())
    await t.clock.advance(1_850)
    t.lock(({ resource }) => resource.name === 'backup')
    t.sources.run('big-0', 'big', {})
    t.sources.drop('big-0', 'big')
    await t.clock.advance(50)
    t.sources.run('j2', 'backup', succeeded())
    await t.clock.advance(150)
    t.lock(() => false)
    await t.clock.advance(10_000)
    expect(t.stored.filter((text) => text.startsWith('backup')).sort()).toEqual([
      'backup j1 fail',
      'backup j2 start+success',
    ])
  })

  it('of a deletion close the run when the caches have forgotten it', async () => {
    await using t = followed('big', 'backup')
    t.sources.run('j1', 'backup', RUNNING)
    await t.drained()
    t.lock(() => true)
    await fill(t, 0)
    t.sources.drop('j1', 'backup')
    t.sources.forget()
    t.lock(() => false)
    await t.clock.advance(10_000)
    await t.drained()
    expect(t.abandoned).toEqual(['backup j1'])
  })
})

it('a check whose reports are rejected again and again fills no memory', async () => {
  await using t = followed('big', 'backup')
  await t.drained()
  t.reject(({ resource }) => resource.name === 'big')
  for (let n = 0; n < 4_500; n += 1) {
    t.sources.run(`big-${n}`, 'big', failed())
    t.sources.drop(`big-${n}`, 'big')
    t.sources.forget()
    if (n % 900 === 899) await t.clock.advance(10_000)
  }
  t.sources.run('j1', 'backup', failed())
  await t.clock.settle()
  expect(t.stored).toEqual(['backup j1 fail'])
  t.reject(() => false)
  await t.clock.advance(60_000)
  expect(t.stored.length).toBeGreaterThan(1_000)
})

describe('a comparison', () => {
  it('that the database cannot answer holds up no other check', async () => {
    await using t = followed('big', 'backup')
    await t.drained()
    t.fail(new Error('it takes too long'), 'findRecorded')
    t.sources.hasRun('j1', 'big', failed())
    t.runs.follow('shop/big')
    t.sources.run('j2', 'big', succeeded('2026-01-01T02:06:00Z'))
    t.sources.run('j3', 'backup', failed())
    await t.clock.advance(5_000)
    expect(t.stored).toEqual(['backup j3 fail'])
    t.fail(null)
    await t.clock.advance(2_000)
    await t.drained()
    expect(t.stored.slice(1)).toEqual(['big j1 fail', 'big j2 start+success'])
  })

  it('is recorded before later news of the check that came meanwhile', async () => {
    await using t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.hasRun('j1', 'backup', failed('2026-01-01T02:05:00Z', 2))
      // Another one is on the way.
      sources.pod(pod('a', 3), 'j1')
      sources.hasRun('j2', 'backup', RUNNING)
    })
    t.sources.run('j2', 'backup', succeeded('2026-01-01T02:06:00Z'))
    await t.clock.advance(2_000)
    await t.drained()
    expect(t.stored).toEqual(['backup j1 start+fail', 'backup j2 start+success'])
  })

  it('of many runs comes before the news of its check', async () => {
    await using t = startRecording(({ sources, follow }) => {
      for (let n = 0; n < 600; n += 1) sources.hasRun(`big-${n}`, 'big', succeeded())
      sources.hasRun('j1', 'backup', failed('2026-01-01T02:05:00Z'))
      for (const name of ['big', 'backup']) follow(name)
    })
    t.sources.run('j2', 'backup', succeeded('2026-01-01T02:06:00Z'))
    t.sources.run('big-0', 'big', succeeded())
    await t.drained()
    expect(t.stored.filter((text) => text.startsWith('backup'))).toEqual(['backup j1 fail', 'backup j2 start+success'])
  })

  it('does not hide what a list shows while it is in progress', async () => {
    await using t = followed('backup')
    await t.drained()
    t.sources.hasRun('j1', 'backup', RUNNING)
    const release = t.hold()
    t.runs.follow('shop/backup')
    await t.clock.settle()
    t.sources.run('j1', 'backup', succeeded(), true)
    t.lock(() => true)
    release()
    await t.clock.advance(5_000)
    t.lock(() => false)
    await t.clock.advance(5_000)
    await t.drained()
    expect(t.stored.at(-1)).toContain('success')
  })

  it('waits for the replacement of a run as the watch does', async () => {
    await using t = startRecording(({ follow }) => {
      follow('backup', { concurrencyPolicy: 'Replace' })
    })
    t.sources.scheduled('a', 'backup', t.clock.now(), RUNNING)
    await t.drained()
    await t.clock.advance(60_000)
    t.sources.drop('a', 'backup')
    t.check('second', 'backup')
    t.runs.follow('shop/second')
    await t.clock.advance(1_000)
    t.sources.scheduled('b', 'backup', t.clock.now(), {})
    await t.clock.advance(1_000)
    await t.drained()
    const ends = t.reports.filter(({ entries }) => entries.some(({ type }) => type === 'log'))
    expect(ends.map(({ resource, lastRun }) => [resource.name, lastRun?.message])).toEqual([
      ['backup', 'Job a had not ended when Job b replaced it'],
      ['second', 'Job a had not ended when Job b replaced it'],
    ])
  })
})

it('a lost run is closed after its start is recorded, also where another transaction locks the check', async () => {
  await using t = followed('backup')
  await t.drained()
  t.lock(() => true)
  t.sources.run('j1', 'backup', RUNNING)
  await t.clock.settle()
  t.sources.drop('j1', 'backup', true)
  expect(await t.drained()).toEqual(['backup'])
  expect(t.abandoned).toEqual([])
  t.lock(() => false)
  await t.clock.advance(2_000)
  expect(await t.drained()).toEqual([])
  expect([t.stored, t.abandoned]).toEqual([['backup j1 start'], ['backup j1']])
})

it('a check that is locked holds up no other one that follows the same source', async () => {
  await using t = startRecording(({ sources, check }) => {
    sources.source('backup')
    for (const name of ['a', 'b']) check(name, 'backup')
  })
  t.lock(({ resource }) => resource.name === 'a')
  t.sources.run('j1', 'backup', failed('2026-01-01T02:05:00Z'))
  t.sources.run('j2', 'backup', succeeded('2026-01-01T02:06:00Z'))
  expect(await t.drained()).toEqual(['a'])
  expect(t.stored).toEqual(['b j1 fail', 'b j2 start+success'])
  t.lock(() => false)
  await t.clock.advance(2_000)
  expect(t.stored.slice(2)).toEqual(['a j1 fail', 'a j2 start+success'])
})

describe('a recorder that stops', () => {
  it('does not say that all is recorded', async () => {
    const t = startRecording(({ sources, follow }) => {
      follow('backup')
      sources.hasRun('j1', 'backup', succeeded())
      sources.sync()
    })
    const drained = t.drained()
    await t.runs.stop(500)
    expect(await isPending(drained)).toBe(true)
  })

  it('waits for no comparison that is asked for meanwhile', async () => {
    const t = followed('backup')
    await t.drained()
    const release = t.hold()
    t.sources.run('j1', 'backup', succeeded())
    await t.clock.settle()
    const stopped = t.runs.stop(5_000)
    t.runs.follow('shop/backup')
    release()
    await stopped
    expect(t.stored).toEqual(['backup j1 start+success'])
  })
})
