/** Reasons beyond the table of causes: several pods, several containers, texts of others, sizes. */

import { describe, expect, it } from 'vitest'
import { explainFailure } from '../../../../src/operator/reasons/explain-failure.ts'
import { failed, NODE, terminated } from '../../../support/job-causes.ts'
import { makeJob, makePod, NAMES, podOf, runOf } from '../../../support/job-objects.ts'

const BACKOFF = { reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' }
const DEADLINE = { reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' }
const backup = (exitCode: number, reason?: string, more?: object) => ({
  name: 'backup',
  restartCount: 0,
  state: terminated(exitCode, reason, more),
})
const runWith = (backoffLimit: number, failedPods: number, condition: typeof BACKOFF = BACKOFF) =>
  runOf(makeJob({ spec: { backoffLimit }, failed: failedPods, hasFailed: true, condition }))
const at = (minute: number) => `2026-11-23T02:${String(minute).padStart(2, '0')}:00Z`
const once = runWith(0, 1)
const podWith = (status: object, more: object = {}) => podOf(makePod({ status, ...more }))
const linesOf = (body: string) => body.split('\n')

describe('the body', () => {
  it('is what the design shows', () => {
    const pod = podOf(
      makePod({
        status: failed(backup(137, 'OOMKilled', { message: 'reading 12,000 rows\nout of memory' })),
        spec: { nodeName: NODE },
      }),
    )
    const { body } = explainFailure(runWith(3, 4), [pod], 'begin\nread\n')
    expect(linesOf(body)).toEqual([
      'container backup was OOMKilled (exit code 137)',
      `Job ${NAMES.JOB} failed: BackoffLimitExceeded: Job has reached the specified backoff limit`,
      `pod ${NAMES.POD} on node worker-3, attempt 4 of 4`,
      '--- termination message',
      'reading 12,000 rows',
      'out of memory',
      '--- last lines of container backup',
      'begin',
      'read',
    ])
  })

  it('of a command that does not exist says that first, and once', () => {
    const fault = 'exec: "backup": executable file not found in $PATH'
    const message = `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: error during container init: ${fault}`
    const { firstLine, body } = explainFailure(once, [podWith(failed(backup(128, 'StartError', { message })))], null)
    expect(firstLine).toBe(`container backup could not start: StartError: ${fault}`)
    expect(body).not.toContain('termination message')
    expect(body.split(fault)).toHaveLength(2)
  })

  it('does not repeat the end of the log, which FallbackToLogsOnError makes the termination message', () => {
    const pod = podWith(failed(backup(3, 'Error', { message: 'two\nthree\n' })))
    const { body } = explainFailure(once, [pod], 'one\ntwo\nthree\n')
    expect(linesOf(body).slice(3)).toEqual(['--- last lines of container backup', 'one', 'two', 'three'])
  })

  it('has at most 10,240 bytes, and of a long log the end', () => {
    const long = 'é'.repeat(30_000)
    const condition = { reason: 'X'.repeat(3_000), message: `pod a/${NAMES.POD} ${long}` }
    const run = { ...runWith(0, 1, condition), failedIndexes: '1,'.repeat(9_000) }
    const pod = podWith({
      ...failed(backup(3, 'R'.repeat(500), { message: long })),
      reason: 'Evicted',
      message: `${long}\nmore`,
    })
    const { firstLine, body, reason } = explainFailure(run, [pod], `${long}\nthe last line\n`)
    expect(Buffer.byteLength(firstLine)).toBeLessThanOrEqual(1_000)
    expect(Buffer.byteLength(reason)).toBeLessThanOrEqual(128)
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(10_240)
    expect(body.endsWith('\nthe last line')).toBe(true)
    const log = Array.from({ length: 2_000 }, (_, index) => `line ${index}`).join('\n')
    const whole = explainFailure(once, [podWith(failed(backup(3)))], log).body
    expect(Buffer.byteLength(whole)).toBeLessThanOrEqual(10_240)
    expect(Buffer.byteLength(whole)).toBeGreaterThan(10_200)
    expect(whole.endsWith('line 1999')).toBe(true)
    expect(linesOf(whole)[4]).toMatch(/^line \d+$/)
  })

  it('is plain text, whatever containers and images say', () => {
    const evil = '\u202e\u2066red \u001b[31malert\u001b[0m\u0000 \ud800\r\nContainer ok\u2028more'
    const pod = podWith(failed(backup(3, 'Error', { message: evil })))
    const { body } = explainFailure(once, [pod], evil)
    for (const text of [
      body,
      explainFailure(once, [podWith({ phase: 'Failed', reason: evil, message: evil })]).firstLine,
    ])
      expect(text).not.toMatch(/[\u202a-\u202e\u2066-\u2069\u2028]|[^\P{Cc}\n]|\p{Cs}/u)
    expect(body).toContain('red alert \ufffd\nContainer ok\nmore')
    const { firstLine, reason } = explainFailure(once, [podWith({ phase: 'Failed', reason: 'A\nB', message: 'c\nd' })])
    expect(firstLine).toBe(`pod ${NAMES.POD} failed: A B: c d`)
    expect(reason).toBe('A B')
  })

  it('leaves parts without content out', () => {
    const run = runOf(
      makeJob({ spec: { backoffLimit: null }, hasFailed: true, condition: { reason: '', message: '' } }),
    )
    expect(explainFailure(run, [])).toEqual({
      firstLine: `Job ${NAMES.JOB} failed`,
      body: `Job ${NAMES.JOB} failed`,
      exitCode: null,
      reason: 'Failed',
      container: null,
    })
  })
})

describe('the pod that says why', () => {
  it('is the newest of those that failed', () => {
    const attempt = (name: string, code: number, minute: number) =>
      podWith(failed(backup(code, 'Error', { finishedAt: at(minute) })), { name })
    const pods = [attempt('b', 4, 20), attempt('c', 5, 30), attempt('a', 3, 10)]
    expect(explainFailure(runWith(2, 3), pods).firstLine).toBe('container backup failed (exit code 5)')
    expect(explainFailure(runWith(2, 3), pods).container).toEqual({ pod: 'c', name: 'backup', isRestarted: false })
  })

  it('is not one that was killed with its Job', () => {
    const killed = podWith(failed(backup(137, 'Error', { finishedAt: at(40) })), {
      name: 'killed',
      metadata: { deletionTimestamp: at(40), deletionGracePeriodSeconds: 30 },
    })
    const culprit = podWith(failed(backup(3, 'Error', { finishedAt: at(10) })), { name: 'culprit' })
    expect(explainFailure(once, [killed, culprit]).firstLine).toBe('container backup failed (exit code 3)')
    // One that failed, and was deleted later, still is.
    const deleted = podWith(failed(backup(3, 'Error', { finishedAt: at(10) })), {
      metadata: { deletionTimestamp: at(40), deletionGracePeriodSeconds: 30 },
    })
    expect(explainFailure(once, [deleted]).firstLine).toBe('container backup failed (exit code 3)')
  })

  it('was killed by a signal in the second of its deletion, on a node whose clock may be behind', () => {
    const lineAt = (exitCode: number, finishedAt: string, reason = 'Error') => {
      const metadata = { deletionTimestamp: '2026-11-23T02:40:30Z', deletionGracePeriodSeconds: 30 }
      const pod = podWith(failed(backup(exitCode, reason, { finishedAt })), { metadata })
      return linesOf(explainFailure(runWith(6, 1, DEADLINE), [pod]).body)[2]
    }
    for (const code of [143, 137]) {
      expect(lineAt(code, '2026-11-23T02:40:00Z')).toMatch(/^pod /)
      expect(lineAt(code, '2026-11-23T02:39:56Z')).toMatch(/^pod /)
      expect(lineAt(code, '2026-11-23T02:39:55Z')).toMatch(/^container backup was killed by signal/)
    }
    expect(lineAt(137, '2026-11-23T02:40:00Z', 'OOMKilled')).toBe('container backup was OOMKilled (exit code 137)')
    expect(lineAt(3, '2026-11-23T02:40:00Z')).toBe('container backup failed (exit code 3)')
    expect(lineAt(3, '2026-11-23T02:40:01Z')).toMatch(/^pod /)
  })

  it('is the one that the policy of the Job names', () => {
    const message = `Container backup for pod payments/named failed with exit code 42 matching FailJob rule at index 0`
    const named = podWith(failed(backup(42, 'Error', { finishedAt: at(1) })), { name: 'named' })
    const later = podWith(failed(backup(3, 'Error', { finishedAt: at(9) })), { name: 'later' })
    const run = runWith(6, 2, { reason: 'PodFailurePolicy', message })
    expect(explainFailure(run, [later, named])).toMatchObject({ exitCode: 42, container: { pod: 'named' } })
  })

  it('of a Job that was too long is the last one; an attempt that failed by itself has its own line', () => {
    const first = podWith(failed(backup(3, 'Error', { finishedAt: at(10) })), { name: 'first' })
    const [cause, job, own] = linesOf(explainFailure(runWith(6, 1, DEADLINE), [first]).body)
    expect([cause, job, own]).toEqual([
      `Job ${NAMES.JOB} ran longer than activeDeadlineSeconds`,
      `Job ${NAMES.JOB} failed: DeadlineExceeded: ${DEADLINE.message}`,
      'container backup failed (exit code 3)',
    ])
    const killed = podWith(failed(backup(143, 'Error', { finishedAt: at(40) })), {
      name: 'killed',
      metadata: { creationTimestamp: at(20), deletionTimestamp: at(40), deletionGracePeriodSeconds: 30 },
    })
    const { firstLine, body, exitCode } = explainFailure(runWith(6, 2, DEADLINE), [first, killed])
    expect(firstLine).toBe(`Job ${NAMES.JOB} ran longer than activeDeadlineSeconds`)
    expect(linesOf(body)[2]).toBe('pod killed, attempt 2 of 7')
    expect(exitCode).toBe(143)
  })
})

describe('the container that says why', () => {
  it('is the one that ended first: others end after it, and sidecars last', () => {
    const pod = podWith(
      failed(
        { ...backup(137, 'Error', { finishedAt: at(9) }), name: 'proxy' },
        backup(3, 'Error', { finishedAt: at(8) }),
      ),
    )
    expect(explainFailure(once, [pod])).toMatchObject({ exitCode: 3, container: { name: 'backup' } })
    const sidecar = podOf(
      makePod({
        spec: { initContainers: [{ name: 'proxy', restartPolicy: 'Always' }] },
        status: {
          ...failed(backup(3, 'Error', { finishedAt: at(8) })),
          initContainerStatuses: [{ ...backup(137, 'Error', { finishedAt: at(9) }), name: 'proxy' }],
        },
      }),
    )
    expect(explainFailure(once, [sidecar]).firstLine).toBe('container backup failed (exit code 3)')
  })

  describe('beside others', () => {
    const named = (name: string, exitCode: number, finishedAt = at(8), reason = 'Error') => ({
      ...backup(exitCode, reason, { finishedAt }),
      name,
    })
    const restarted = (name: string, exitCode: number, finishedAt: string, restartCount = 1) => ({
      name,
      restartCount,
      state: { running: {} },
      lastState: terminated(exitCode, 'Error', { finishedAt }),
    })
    const sidecar = { initContainers: [{ name: 'proxy', restartPolicy: 'Always' }] }
    const lineOf = (status: object, spec: object = {}, more: object = {}) =>
      explainFailure(once, [podWith(status, { spec, ...more })]).firstLine
    const specOf = (...names: string[]) => ({ containers: names.map((name) => ({ name })) })
    const [FIVE, OOM] = ['container backup failed (exit code 5)', 'container backup was OOMKilled (exit code 137)']
    const beside = (proxy: object, ...containers: object[]) => ({
      ...failed(...containers),
      initContainerStatuses: [proxy],
    })
    const oomKilled = named('backup', 137, at(8), 'OOMKilled')
    const lost = { ...backup(137, 'ContainerStatusUnknown', { finishedAt: null }), name: 'a' }

    it.each([
      ['143 in the same second', named('proxy', 143)],
      ['137 in the same second', named('proxy', 137)],
      ['another code in the same second', named('proxy', 2)],
      ['a code in a second before, though it was restarted', restarted('proxy', 1, at(1), 3)],
      ['a signal long before: Kubernetes restarts it', named('proxy', 143, at(1))],
    ])('it is not a sidecar that has %s', (_, proxy) => {
      expect(lineOf(beside(proxy, named('backup', 5)), sidecar)).toBe(FIVE)
    })

    it.each(['istio-proxy', 'a-proxy'])('it is not %s, which was asked to end in the same second', (name) => {
      for (const code of [143, 137, 0]) expect(lineOf(failed(named(name, code), named('backup', 5)))).toBe(FIVE)
    })

    it.each<[string, object, string, object?]>([
      [
        'a sidecar where no other container failed',
        beside(named('proxy', 3), named('backup', 0)),
        'container proxy failed (exit code 3)',
        sidecar,
      ],
      [
        'an init container that failed, whatever a sidecar beside it ended with',
        {
          phase: 'Failed',
          initContainerStatuses: [named('migrate', 7, at(9)), named('proxy', 143, at(8))],
          containerStatuses: [{ name: 'backup', restartCount: 0, state: { waiting: { reason: 'PodInitializing' } } }],
        },
        'init container migrate failed (exit code 7)',
        { initContainers: [{ name: 'migrate' }, ...sidecar.initContainers] },
      ],
      ['one killed for memory, beside a killed sidecar', beside(named('proxy', 137), oomKilled), OOM, sidecar],
      ['one killed for memory, beside another killed one', failed(named('a', 137), oomKilled), OOM],
      [
        'one that was killed before the others failed',
        failed(named('a', 5, at(9)), named('backup', 143, at(8))),
        'container backup was killed by signal 15 (exit code 143)',
      ],
      [
        'not one that has run again',
        { ...failed(restarted('a', 1, at(1)), named('backup', 5)), phase: 'Running' },
        FIVE,
      ],
      [
        'the last attempt, where all run again',
        { phase: 'Running', containerStatuses: [restarted('a', 1, at(1)), restarted('backup', 5, at(9), 6)] },
        FIVE,
      ],
      ['one whose end has a time, before one that was lost', failed(lost, lost, named('backup', 5)), FIVE],
      [
        'no container that a person has added to look',
        { ...failed(named('backup', 5)), ephemeralContainerStatuses: [named('debugger', 130, at(1))] },
        FIVE,
      ],
    ])('it is %s', (_, status, says, spec) => {
      expect(lineOf(status, spec)).toBe(says)
    })

    it('it is the first of the spec, where several failed in the same second', () => {
      const status = failed(named('a', 2), named('backup', 5))
      expect(lineOf(status, specOf('backup', 'a'))).toBe(FIVE)
      expect(lineOf(status, specOf('a', 'backup'))).toBe('container a failed (exit code 2)')
      // As Istio sets it, whose proxy may have to start before the container of the job.
      const annotations = { 'kubectl.kubernetes.io/default-container': 'backup' }
      expect(lineOf(status, specOf('a', 'backup'), { annotations })).toBe(FIVE)
    })
  })

  it('may have been restarted in its pod: its last attempt counts, and each attempt', () => {
    const lastState = terminated(3)
    const waiting = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container' } }
    const status = {
      phase: 'Running',
      containerStatuses: [{ name: 'backup', restartCount: 2, state: waiting, lastState }],
    }
    const metadata = { deletionTimestamp: at(40), deletionGracePeriodSeconds: 0 }
    const failure = explainFailure(runWith(2, 1), [podOf(makePod({ status, metadata }))])
    expect(failure).toMatchObject({ firstLine: 'container backup failed (exit code 3)', exitCode: 3 })
    expect(linesOf(failure.body)[2]).toBe(`pod ${NAMES.POD}, attempt 3 of 3`)
    const running = { name: 'backup', restartCount: 2, state: { running: {} }, lastState }
    const again = podOf(makePod({ status: { phase: 'Running', containerStatuses: [running] }, metadata }))
    expect(explainFailure(runWith(2, 1), [again]).container).toMatchObject({ isRestarted: true })
  })

  it('was restarted and ended with its pod: the attempt before counts, whatever the last one ended with', () => {
    const linesFor = (exitCode: number, finishedAt: string, more: object = {}, lastState = terminated(3)) => {
      const status = {
        ...failed({ ...backup(exitCode, 'Error', { finishedAt }), restartCount: 3, lastState }),
        ...more,
      }
      const metadata = { deletionTimestamp: '2026-11-23T02:40:30Z', deletionGracePeriodSeconds: 30 }
      return explainFailure(runWith(3, 1), [podWith(status, { metadata })])
    }
    for (const [code, finishedAt] of [
      [137, '2026-11-23T02:40:30Z'],
      [143, '2026-11-23T02:39:56Z'],
      [1, '2026-11-23T02:40:00Z'],
      [0, '2026-11-23T02:40:00Z'],
    ] as const) {
      const { firstLine, exitCode, container } = linesFor(code, finishedAt)
      expect([firstLine, exitCode]).toEqual(['container backup failed (exit code 3)', 3])
      // Its log is that of the attempt before.
      expect(container?.isRestarted).toBe(true)
    }
    // By itself, before the deletion.
    expect(linesFor(1, '2026-11-23T02:39:59Z').firstLine).toBe('container backup failed (exit code 1)')
    expect(linesFor(143, '2026-11-23T02:39:55Z').exitCode).toBe(143)
    expect(linesFor(0, '2026-11-23T02:39:59Z').exitCode).toBeNull()
    // The attempt before was no part of the deletion, however close.
    const before = terminated(137, 'Error', { finishedAt: '2026-11-23T02:39:59Z' })
    expect(linesFor(143, '2026-11-23T02:40:01Z', {}, before).exitCode).toBe(137)
    // An eviction ended it.
    const conditions = [{ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI', message: 'x' }]
    expect(linesFor(143, '2026-11-23T02:40:01Z', { conditions }).exitCode).toBe(143)
  })

  it('was killed by a signal that Kubernetes or the exit code names', () => {
    const lineOf = (exitCode: number, more: object = {}) =>
      explainFailure(once, [podWith(failed(backup(exitCode, 'Error', more)))]).firstLine
    expect(lineOf(137)).toBe('container backup was killed by signal 9 (exit code 137)')
    expect(lineOf(2, { signal: 6 })).toBe('container backup was killed by signal 6 (exit code 2)')
    expect(lineOf(128)).toBe('container backup failed (exit code 128)')
    expect(lineOf(129)).toBe('container backup was killed by signal 1 (exit code 129)')
    expect(lineOf(159)).toBe('container backup was killed by signal 31 (exit code 159)')
    expect(lineOf(160)).toBe('container backup failed (exit code 160)')
    expect(lineOf(255)).toBe('container backup failed (exit code 255)')
  })

  it('has an exit code from 1 to 255, or none is recorded', () => {
    const codeOf = (exitCode: number) => explainFailure(once, [podWith(failed(backup(exitCode)))]).exitCode
    expect([1, 255, 256, -1, 3_221_225_477].map(codeOf)).toEqual([1, 255, null, null, null])
  })
})

describe('a pod that Kubernetes ended, with its reason', () => {
  const words = (reason: string) => ({ reason, message: 'what Kubernetes says' })

  it.each([
    ['DeadlineExceeded', 'failed: DeadlineExceeded'],
    ['Evicted', 'was evicted'],
    ['Preempting', 'was preempted'],
    ['NodeLost', 'was lost'],
    ['Preempted', 'failed: Preempted'],
    ['UnexpectedAdmissionError', 'failed: UnexpectedAdmissionError'],
    ['OutOfcpu', 'failed: OutOfcpu'],
    ['NodeShutdown', 'failed: NodeShutdown'],
    ['Terminated', 'failed: Terminated'],
    ['AWordOfTheFuture', 'failed: AWordOfTheFuture'],
  ])('%s, says that first, and not how its containers ended', (reason, says) => {
    const status = { ...failed(backup(137, 'Error', { finishedAt: at(8) })), ...words(reason) }
    expect(explainFailure(once, [podWith(status)])).toMatchObject({
      firstLine: `pod ${NAMES.POD} ${says}: what Kubernetes says`,
      reason,
      exitCode: 137,
    })
  })

  it.each([137, 143])('with a message alone says that first, if its container ended by signal (%d)', (exitCode) => {
    const pod = podWith({ ...failed(backup(exitCode)), message: 'what Kubernetes says' })
    expect(explainFailure(once, [pod])).toMatchObject({
      firstLine: `pod ${NAMES.POD} failed: what Kubernetes says`,
      exitCode,
    })
    const oom = podWith({ ...failed(backup(137, 'OOMKilled')), message: 'what Kubernetes says' })
    expect(explainFailure(once, [oom]).firstLine).toBe('container backup was OOMKilled (exit code 137)')
  })

  it('says how its container failed by itself where it gives a message alone, or has not failed', () => {
    const container = failed(backup(3))
    const lineOf = (more: object) => explainFailure(once, [podWith({ ...container, ...more })]).firstLine
    expect(lineOf({ message: 'what Kubernetes says' })).toBe('container backup failed (exit code 3)')
    expect(lineOf({ ...words('DeadlineExceeded'), phase: 'Running' })).toBe('container backup failed (exit code 3)')
  })
})

describe('the attempts', () => {
  it('are counted where they are known', () => {
    const pod = podWith(failed(backup(3)))
    const lineOf = (backoffLimit: number, failedPods: number) =>
      linesOf(explainFailure(runWith(backoffLimit, failedPods), [pod]).body)[2]
    expect(lineOf(0, 1)).toBe(`pod ${NAMES.POD}, attempt 1 of 1`)
    expect(lineOf(6, 7)).toBe(`pod ${NAMES.POD}, attempt 7 of 7`)
    // Pods side by side.
    expect(lineOf(0, 3)).toBe(`pod ${NAMES.POD}`)
  })
})
