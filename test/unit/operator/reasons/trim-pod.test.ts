/** What is kept of a pod. */

import { describe, expect, it } from 'vitest'
import type { KubernetesObject } from '../../../../src/kubernetes/objects.ts'
import { trimPod } from '../../../../src/operator/reasons/trim-pod.ts'
import { failed, NODE, terminated } from '../../../support/job-causes.ts'
import { makePod, NAMES, podOf } from '../../../support/job-objects.ts'

describe('a pod that is stored', () => {
  it('keeps what a reason needs, and nothing of its spec', () => {
    const status = failed(
      {
        name: 'backup',
        restartCount: 1,
        state: terminated(3, 'Error', { message: 'gone' }),
        image: 'secret.example.com',
      },
      { name: 'proxy', restartCount: 0, state: terminated(0, 'Completed') },
      { name: 'agent', restartCount: 0, state: { running: { startedAt: '2026-11-23T02:00:00Z' } } },
    )
    const env = [{ name: 'TOKEN', value: 'secret' }]
    const pod = podOf(makePod({ status, spec: { nodeName: NODE, containers: [{ name: 'backup', env }] } }))
    expect(pod).toEqual({
      metadata: { namespace: NAMES.NAMESPACE, name: NAMES.POD, uid: `uid-of-${NAMES.POD}`, resourceVersion: '7' },
      runUid: '5d0cfa5e-0f0b-4a3f-9f5e-2f9f4c1b7a01',
      node: NODE,
      index: null,
      phase: 'Failed',
      createdAt: Date.parse('2026-11-23T02:00:00Z'),
      deletedAt: null,
      status: null,
      unscheduled: null,
      disruption: null,
      hasStarted: true,
      isUnready: false,
      containers: [
        {
          name: 'backup',
          isInit: false,
          isSidecar: false,
          restarts: 1,
          waiting: null,
          failed: {
            reason: 'Error',
            message: 'gone',
            exitCode: 3,
            signal: null,
            finishedAt: Date.parse('2026-11-23T02:04:11Z'),
          },
          isRestarted: false,
          endedAt: Date.parse('2026-11-23T02:04:11Z'),
          failedBefore: null,
        },
      ],
      kept: null,
    })
    expect(JSON.stringify(pod)).not.toContain('secret')
  })

  it('is bounded: 10 containers, 4,096 characters of each message', () => {
    const containers = Array.from({ length: 40 }, (_, index) => ({
      name: `c${index}`,
      restartCount: 0,
      state: terminated(3, 'Error', { message: 'x'.repeat(10_000) }),
    }))
    const pod = podOf(makePod({ status: failed(...containers) }))
    expect(pod.containers.map(({ name }) => name)).toEqual(Array.from({ length: 10 }, (_, index) => `c${index}`))
    expect(pod.containers[0]!.failed!.message).toHaveLength(4_096)
  })

  it('does not throw, whatever the object lacks', () => {
    const bare = { metadata: { name: 'x', uid: 'u', resourceVersion: '1' } } as KubernetesObject
    expect(trimPod(bare, 'Job')).toMatchObject({ runUid: null, phase: 'Pending', createdAt: 0, containers: [] })
    const odd = {
      ...bare,
      spec: {},
      status: { containerStatuses: [{ name: 'x' }], conditions: [] },
    } as KubernetesObject
    expect(trimPod(odd as never, 'Job').containers).toEqual([])
  })

  it('belongs to the Job that controls it, not to others', () => {
    const ownerReferences = [
      { kind: 'Job', uid: 'another' },
      { kind: 'Job', uid: 'its own', controller: true },
    ]
    expect(podOf(makePod({ metadata: { ownerReferences } })).runUid).toBe('its own')
  })

  const waits = { waiting: { reason: 'CrashLoopBackOff' } }
  const runs = { running: { startedAt: '2026-11-23T02:00:00Z' } }
  it.each([
    ['runs', { state: runs }, true],
    ['is created', { state: { waiting: { reason: 'ContainerCreating' } } }, false],
    ['waits for its image', { state: { waiting: { reason: 'ErrImagePull' } } }, false],
    ['has ended', { state: terminated(8) }, true],
    ['waits after an attempt', { state: waits, lastState: terminated(8) }, true],
    ['was restarted, and nothing else is known', { state: waits, restartCount: 1 }, true],
    [
      'could not be started again and again',
      { state: waits, lastState: terminated(128, 'StartError'), restartCount: 3 },
      false,
    ],
    ['could not be started', { state: terminated(128, 'ContainerCannotRun') }, false],
    ['could not be started after an attempt', { state: terminated(128, 'StartError'), lastState: terminated(8) }, true],
  ])('has started or not when its container %s', (_, container, hasStarted) => {
    const status = { containerStatuses: [{ name: 'backup', restartCount: 0, ready: false, ...container }] }
    expect(podOf(makePod({ status }))).toMatchObject({ hasStarted, isUnready: false })
    // One that runs before the others, or beside them.
    const before = podOf(makePod({ status: { initContainerStatuses: status.containerStatuses } }))
    expect(before.hasStarted).toBe(false)
  })

  it('has not started while one of its containers waits for its image, though another one runs', () => {
    const proxy = { name: 'proxy', restartCount: 0, ready: true, state: runs }
    const backup = { name: 'backup', restartCount: 0, ready: false, state: { waiting: { reason: 'ImagePullBackOff' } } }
    expect(podOf(makePod({ status: { containerStatuses: [proxy, backup] } })).hasStarted).toBe(false)
    const started = { ...backup, ready: true, state: runs }
    expect(podOf(makePod({ status: { containerStatuses: [proxy, started] } })).hasStarted).toBe(true)
    expect(podOf(makePod({ status: { containerStatuses: [] } })).hasStarted).toBe(false)
  })

  it('has not started while a readiness probe fails, until it was restarted', () => {
    const spec = { containers: [{ name: 'backup', readinessProbe: { httpGet: { port: 80 } } }] }
    const podWith = (more: object) => {
      const containerStatuses = [{ name: 'backup', restartCount: 0, ready: false, state: runs, ...more }]
      const { hasStarted, isUnready } = podOf(makePod({ spec, status: { containerStatuses } }))
      return { hasStarted, isUnready }
    }
    expect(podWith({})).toEqual({ hasStarted: false, isUnready: true })
    expect(podWith({ ready: true })).toEqual({ hasStarted: true, isUnready: false })
    expect(podWith({ restartCount: 1 })).toEqual({ hasStarted: true, isUnready: true })
  })

  it('knows when its deletion was requested', () => {
    const metadata = { deletionTimestamp: '2026-11-23T02:10:30Z', deletionGracePeriodSeconds: 30 }
    expect(podOf(makePod({ metadata })).deletedAt).toBe(Date.parse('2026-11-23T02:10:00Z'))
  })
})
