/** What is said of a pod that goes on although one of its containers has ended (docs/use/cronjobs.md, "Reasons"). */

import { describe, expect, it } from 'vitest'
import { explainKept } from '../../../../src/operator/reasons/explain-kept.ts'
import { explainRunning } from '../../../../src/operator/reasons/explain-running.ts'
import { terminated } from '../../../support/job-causes.ts'
import { makePod, NAMES, podOf } from '../../../support/job-objects.ts'

const ended = (name: string, exitCode: number, reason?: string) => ({ name, state: terminated(exitCode, reason) })
const runs = (name: string) => ({ name, state: { running: {} } })
const kept = (containerStatuses: object[], more: object = {}, spec: object = {}, metadata: object = {}) =>
  podOf(makePod({ status: { phase: 'Running', containerStatuses, ...more }, spec, metadata }))
const lineOf = (...args: Parameters<typeof kept>) => explainKept([kept(...args)])?.firstLine ?? null

it.each([
  ['has failed', [runs('istio-proxy'), ended('backup', 7)], 'failed (exit code 7)', 'istio-proxy'],
  [
    'was killed for memory',
    [ended('backup', 137, 'OOMKilled'), runs('linkerd-proxy')],
    'was OOMKilled (exit code 137)',
    'linkerd-proxy',
  ],
  ['could not start', [ended('backup', 128, 'StartError'), runs('proxy')], 'could not start: StartError', 'proxy'],
  ['has ended with 0', [ended('backup', 0, 'Completed'), runs('agent')], 'has ended (exit code 0)', 'agent'],
  [
    'has failed beside one that has not',
    [ended('a', 0, 'Completed'), ended('backup', 7), runs('proxy')],
    'failed (exit code 7)',
    'proxy',
  ],
])('that %s is named, with what keeps its pod', (_, containers, says, keeper) => {
  expect(lineOf(containers)).toBe(`container backup ${says}, and container ${keeper} keeps the pod running`)
})

it('names each container that keeps the pod', () => {
  expect(lineOf([ended('backup', 7), runs('agent'), runs('proxy')])).toBe(
    'container backup failed (exit code 7), and containers agent, proxy keep the pod running',
  )
})

describe('of a job with a helper', () => {
  const spec = { containers: [{ name: 'main' }, { name: 'helper' }] }
  const DEFAULT = 'kubectl.kubernetes.io/default-container'
  const [MAIN_ENDED, MAIN_FAILED] = [
    [runs('helper'), ended('main', 0)],
    [runs('helper'), ended('main', 7)],
  ]
  const [HELPER_ENDED, HELPER_FAILED] = [
    [ended('helper', 0), runs('main')],
    [ended('helper', 3), runs('main')],
  ]
  it.each<[string, object[], string | undefined, [string, string] | null]>([
    ['an end of the helper with 0 is no fault', HELPER_ENDED, undefined, null],
    ['nor with the annotation for the main container', HELPER_ENDED, 'main', null],
    ['an end of the first is none if the annotation names another', MAIN_ENDED, 'helper', null],
    [
      'the annotation decides which is the main one',
      HELPER_ENDED,
      'helper',
      ['helper has ended (exit code 0)', 'main'],
    ],
    ['one that names no container decides nothing', MAIN_ENDED, 'absent', ['main has ended (exit code 0)', 'helper']],
    ['an end of the main container is said', MAIN_ENDED, undefined, ['main has ended (exit code 0)', 'helper']],
    ['a failure of the main container is said', MAIN_FAILED, undefined, ['main failed (exit code 7)', 'helper']],
    ['so is one of the helper: the pod cannot succeed', HELPER_FAILED, 'main', ['helper failed (exit code 3)', 'main']],
  ])('%s', (_, containers, annotated, says) => {
    const annotations = annotated === undefined ? {} : { [DEFAULT]: annotated }
    const line = says && `container ${says[0]}, and container ${says[1]} keeps the pod running`
    expect(lineOf(containers, {}, spec, { annotations })).toBe(line)
  })
})

describe('of two containers that failed, the first that failed is named', () => {
  const failedAt = (name: string, exitCode: number, finishedAt: string | null, reason?: string) => ({
    name,
    state: terminated(exitCode, reason, { finishedAt }),
  })
  const spec = { containers: [{ name: 'main' }, { name: 'helper' }, { name: 'proxy' }] }
  const [EARLY, LATE] = ['2026-11-23T02:04:11Z', '2026-11-23T02:04:12Z']
  it.each<[string, object, object, string]>([
    ['earlier', failedAt('main', 7, LATE), failedAt('helper', 3, EARLY), 'helper failed (exit code 3)'],
    ['earlier', failedAt('main', 7, EARLY), failedAt('helper', 3, LATE), 'main failed (exit code 7)'],
    ['at the same time', failedAt('helper', 3, EARLY), failedAt('main', 7, EARLY), 'main failed (exit code 7)'],
    ['not ended', failedAt('main', 143, EARLY), failedAt('helper', 3, EARLY), 'helper failed (exit code 3)'],
    [
      'killed for memory',
      failedAt('main', 143, EARLY),
      failedAt('helper', 137, EARLY, 'OOMKilled'),
      'helper was OOMKilled (exit code 137)',
    ],
    ['at a known time', failedAt('main', 7, null), failedAt('helper', 3, LATE), 'helper failed (exit code 3)'],
  ])('%s', (_, one, other, says) => {
    const line = lineOf([one, other, runs('proxy')], {}, spec)
    expect(line).toBe(`container ${says}, and container proxy keeps the pod running`)
  })
})

it('has the exit code and the reason of a container that failed', () => {
  const of = (exitCode: number, reason: string) =>
    explainKept([kept([ended('backup', exitCode, reason), runs('proxy')])])
  expect(of(7, 'Error')).toMatchObject({ exitCode: 7, reason: 'Error' })
  expect(of(0, 'Completed')).toMatchObject({ exitCode: null, reason: 'Completed' })
})

it('is said only while the pod goes on, and its container does not', () => {
  const containers = [ended('backup', 7), runs('proxy')]
  expect(lineOf([runs('backup'), runs('proxy')])).toBeNull()
  expect(lineOf([ended('backup', 7), ended('proxy', 0)])).toBeNull()
  expect(lineOf(containers, { phase: 'Failed' })).toBeNull()
  expect(lineOf(containers, {}, {}, { deletionTimestamp: '2026-11-23T02:05:00Z' })).toBeNull()
  // The container is started again.
  expect(lineOf(containers, {}, { restartPolicy: 'OnFailure' })).toBeNull()
  expect(lineOf([ended('backup', 0), runs('proxy')], {}, { restartPolicy: 'OnFailure' })).not.toBeNull()
  // Kubernetes ends a sidecar itself.
  const sidecar = { initContainers: [{ name: 'proxy', restartPolicy: 'Always' }] }
  expect(lineOf([ended('backup', 7)], { initContainerStatuses: [runs('proxy')] }, sidecar)).toBeNull()
  expect(explainKept([])).toBeNull()
})

it('is a part of what is said of a run that takes too long', () => {
  const pod = kept([ended('backup', 7), runs('proxy')], {}, { nodeName: 'worker-3' })
  expect(explainRunning([pod])).toBe(
    `pod ${NAMES.POD} on node worker-3: container backup failed (exit code 7), and container proxy keeps the pod running`,
  )
})
