/** When Events are listed for runs that do not start, and what is said of those that are due (docs/use/cronjobs.md). */

import { describe, expect, it } from 'vitest'
import type { TrimmedPod } from '../../../../src/operator/reasons/trim-pod.ts'
import { createMissedExplainer } from '../../../../src/operator/runs/explain-missed.ts'
import type { SourceRun } from '../../../../src/operator/sources/source-kind.ts'
import type { FollowedCheck } from '../../../../src/store/jobs/followed-checks.ts'
import { anApiError, SECOND } from '../../../support/builders.ts'
import { makeJob, podOf, runOf, sourceOf } from '../../../support/job-objects.ts'
import { createManualClock } from '../../../support/manual-clock.ts'

const warning = { type: 'Warning', reason: 'FailedCreate', message: 'exceeded quota', metadata: {} }

interface Setting {
  readonly count?: number
  readonly graceMs?: number
  readonly run?: SourceRun | null
  readonly source?: object
  /** Of each run. */
  readonly pods?: readonly TrimmedPod[]
  readonly answer?: () => Promise<object>
}

/** Checks that are due `graceMs` from now; none of their runs has started. */
function start({ count = 1, graceMs = 300 * SECOND, run = null, source = {}, pods = [], answer }: Setting = {}) {
  const clock = createManualClock()
  const from = clock.now()
  const lists: { at: number; namespace: string; fieldSelector: string }[] = []
  const warnings: string[] = []
  const listed: number[] = []
  let checks: FollowedCheck[] = Array.from({ length: count }, (_, key) => ({
    key,
    resource: { cluster: 'default', namespace: 'payments', name: `job-${key}` },
    source: `job-${key}`,
    createdAt: 0,
    status: 'up' as const,
    dueAt: from + graceMs,
    graceMs,
    openJobRuns: [],
    explainedFor: null,
  }))
  const explainer = createMissedExplainer({
    listDue: async (_, until, limit) => {
      listed.push(limit)
      return checks.filter(({ dueAt }) => dueAt! <= until).slice(0, limit)
    },
    client: {
      list: (async (_: unknown, { namespace, fieldSelector }: { namespace: string; fieldSelector: string }) => {
        lists.push({ at: clock.now() - from, namespace, fieldSelector })
        return answer === undefined
          ? { items: [{ ...warning, lastTimestamp: new Date(clock.now()).toISOString() }] }
          : answer()
      }) as never,
    },
    sources: {
      getSource: (key) => {
        const name = key.split('/')[1]!
        const whole = sourceOf(source)
        return { ...whole, metadata: { ...whole.metadata, name, uid: `uid-of-${name}` } }
      },
      runsOf: () => (run === null ? [] : [run]),
      podsOf: () => pods,
    },
    clock,
    log: { warn: ((_: object, text: string) => void warnings.push(text)) as never },
  })
  const signal = new AbortController().signal
  const explain = () => explainer.explain(['default'], clock.now(), signal)
  /** As the leader does, every two seconds. */
  const explainUntil = async (ms: number) => {
    let details = await explain()
    while (clock.now() - from < ms) {
      await clock.advance(2 * SECOND)
      const found = explain()
      await clock.advance(0)
      details = await found
    }
    return details
  }
  const change = (changes: Partial<FollowedCheck>) => {
    checks = checks.map((check) => ({ ...check, ...changes }))
  }
  return { clock, lists, listed, warnings, explain, explainUntil, change, from, signal, explainer }
}

describe('the Events of an object', () => {
  it('are listed once, 60 seconds before its run is missed', async () => {
    const { lists, explainUntil, from } = start()
    expect(await explainUntil(298 * SECOND)).toEqual([])
    expect(lists).toEqual([
      { at: 240 * SECOND, namespace: 'payments', fieldSelector: 'involvedObject.uid=uid-of-job-0,type=Warning' },
    ])
    expect(await explainUntil(300 * SECOND)).toEqual([
      {
        resource: { cluster: 'default', namespace: 'payments', name: 'job-0' },
        source: 'job-0',
        dueAt: from + 300 * SECOND,
        job: null,
        detail: 'exceeded quota',
      },
    ])
    expect(lists).toHaveLength(1)
  })

  it('are listed in the second half of a short grace time', async () => {
    const { lists, explainUntil } = start({ graceMs: 40 * SECOND })
    await explainUntil(40 * SECOND)
    expect(lists.map(({ at }) => at)).toEqual([20 * SECOND])
  })

  it('are waited for where there is no grace time', async () => {
    const { clock, lists, explain } = start({ graceMs: 0 })
    const details = explain()
    await clock.advance(0)
    expect((await details)[0]!.detail).toBe('exceeded quota')
    expect(lists).toHaveLength(1)
  })

  it('are those of the Job, if there is one', async () => {
    const run = runOf(makeJob({}))
    const { lists, explainUntil } = start({ run })
    expect(await explainUntil(300 * SECOND)).toMatchObject([{ job: run.metadata.name, detail: 'exceeded quota' }])
    expect(lists.map(({ fieldSelector }) => fieldSelector)).toEqual([
      `involvedObject.uid=${run.metadata.uid},type=Warning`,
    ])
  })

  it('are not listed where the caches know, nor again once a detail is saved', async () => {
    const blocked = start({ source: { concurrencyPolicy: 'Forbid', active: ['other'] } })
    expect(await blocked.explainUntil(300 * SECOND)).toMatchObject([
      { job: 'other', detail: expect.stringContaining('Job other is still active') },
    ])
    expect(blocked.lists).toEqual([])
    blocked.change({ explainedFor: blocked.from + 300 * SECOND })
    expect(await blocked.explainUntil(302 * SECOND)).toEqual([])
  })

  it('are not listed for a run that blocks others and is between two attempts', async () => {
    const run = runOf(makeJob({}))
    const source = { concurrencyPolicy: 'Forbid', active: [run.metadata.name] }
    const blocked = 'is still active, and concurrencyPolicy Forbid lets no other Job start beside it'
    // Of the slot before.
    const { lists, explainUntil } = start({ run: { ...run, slotAt: 0 }, source })
    const details = [{ job: run.metadata.name, detail: `Job ${run.metadata.name} ${blocked}` }]
    expect(await explainUntil(300 * SECOND)).toMatchObject(details)
    expect(lists).toEqual([])
    // Started by hand after the slot, and recorded.
    const manual = start({ run: { ...run, slotAt: Number.MAX_SAFE_INTEGER }, source })
    manual.change({ openJobRuns: [run.metadata.uid] })
    expect(await manual.explainUntil(300 * SECOND)).toMatchObject(details)
    expect(manual.lists).toEqual([])
  })

  it('are not listed for a run that blocks others because it cannot start: its pod says why', async () => {
    const run = { ...runOf(makeJob({})), slotAt: 0 }
    const source = { concurrencyPolicy: 'Forbid', active: [run.metadata.name] }
    const waiting = { reason: 'ErrImagePull', message: 'not found' }
    const status = { phase: 'Pending', containerStatuses: [{ name: 'backup', state: { waiting } }] }
    const { lists, explainUntil } = start({ run, source, pods: [podOf({ metadata: { name: 'p' }, status })] })
    expect(await explainUntil(300 * SECOND)).toMatchObject([
      { detail: expect.stringMatching(/ beside it: container backup could not start: ErrImagePull: not found$/) },
    ])
    expect(lists).toEqual([])
  })

  it('are listed at most five times a second, and all in time', async () => {
    const { lists, explainUntil } = start({ count: 200 })
    const details = await explainUntil(300 * SECOND)
    expect(details.map(({ detail }) => detail)).toEqual(Array(200).fill('exceeded quota'))
    expect(lists).toHaveLength(200)
    for (const [index, { at }] of lists.entries()) {
      const next = lists[index + 5]
      if (next !== undefined) expect(next.at - at).toBeGreaterThanOrEqual(SECOND)
    }
  })
})

describe('when they cannot be listed', () => {
  it('the state of the CronJob is the reason, and the log has one line', async () => {
    const answer = () => Promise.reject(anApiError(403))
    const { lists, warnings, explainUntil } = start({ count: 3, answer })
    const details = await explainUntil(300 * SECOND)
    for (const { detail } of details) expect(detail).toContain('created no Job for the slot')
    expect(details).toHaveLength(3)
    expect(lists).toHaveLength(3)
    expect(warnings).toEqual(['the Events of a CronJob cannot be listed'])
  })

  it('a deadline that has passed waits a second for them', async () => {
    const { clock, explain } = start({ graceMs: 0, answer: () => new Promise(() => {}) })
    let details: unknown[] | null = null
    void explain().then((found) => {
      details = found
    })
    await clock.advance(999)
    expect(details).toBeNull()
    await clock.advance(1)
    expect(details).toMatchObject([{ detail: expect.stringContaining('created no Job') }])
  })
})

it('a check without its CronJob, or of which nothing is due, has no detail', async () => {
  const { explain, change } = start({ graceMs: 0 })
  change({ source: null })
  expect(await explain()).toEqual([])
  change({ source: 'job-0', dueAt: null })
  expect(await explain()).toEqual([])
})

it('each of 2,500 runs that are missed at once has a detail, and one more list is enough', async () => {
  const source = { concurrencyPolicy: 'Forbid', active: ['other'] }
  const { explain, listed } = start({ count: 2_500, graceMs: 0, source })
  const details = await explain()
  expect(new Set(details.map(({ resource, detail }) => `${resource.name} ${detail}`)).size).toBe(2_500)
  expect(listed).toEqual([1_000, 20_000])
  const few = start({ count: 999, graceMs: 0, source })
  expect(await few.explain()).toHaveLength(999)
  expect(few.listed).toEqual([1_000])
})
