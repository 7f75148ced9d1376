/**
 * The CronJobs of the guide, which know nothing of us, as steps of the story: one that works, one that exits with 3,
 * one that is killed for its memory, one whose image does not exist, one that hangs past its maximum run time, and one
 * that is suspended. The text of each alert.
 */

import { expect } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { readText } from '../support/documents.ts'
import { eventually } from '../support/until.ts'
import type { Delivered } from './cast.ts'
import { REASONS } from './demo.ts'
import type { Installation } from './installation.ts'
import type { Stage } from './stage.ts'
import type { Story } from './steps.ts'

const CRON_JOBS = parseAllDocuments(readText('manifests/demo/cronjobs.yaml'))
  .map((document) => document.toJS() as { kind: string; metadata: { name: string } })
  .filter(({ kind }) => kind === 'CronJob')
  .map(({ metadata }) => metadata.name)
const WATCH = 'heartbeat-operator.io/watch'
/** From the label: a full minute, the grace time, and the start of a pod. */
const ALARM_MS = 180_000
const SOON_MS = 15_000

interface Down {
  readonly type: string
  readonly data: {
    readonly reason: string
    readonly detail: string | null
    readonly occurred_at: string
    readonly detected_at: string
    readonly check: {
      readonly kubernetes: {
        readonly namespace: string
        readonly name: string
        readonly source?: { readonly kind: string; readonly name: string }
        readonly run?: string
      }
    }
    readonly last_ping: { readonly exit_code: number | null; readonly body: string | null } | null
  }
}

/** Each registers its steps where it is called. */
export function playCronJobs(stage: () => Stage, installation: () => Installation, { step, print }: Story) {
  const events = new Map<string, Down>()
  let labelledAt = 0
  const inPayments = (...args: string[]) => stage().kubectl('--namespace', 'payments', ...args)
  const listChecks = async (): Promise<string[]> =>
    (await inPayments('get', 'hbc', '--output=name')).split('\n').flatMap((line) => line.split('/')[1] ?? [])
  const checkIds = async (): Promise<string> =>
    inPayments('get', 'hbc', '--output=jsonpath={range .items[*]}{.metadata.name} {.status.checkId}{"\\n"}{end}')

  function watched(): void {
    step('the label makes six HeartbeatChecks that follow the CronJobs, and changes nothing in them', async () => {
      labelledAt = Date.now()
      await eventually('six HeartbeatChecks', async () => (await listChecks()).length === CRON_JOBS.length, SOON_MS)
      expect(await listChecks()).toEqual(CRON_JOBS.toSorted())
      const secrets = await inPayments('get', 'secrets,configmaps', '--output=name')
      expect(secrets.trim()).toBe('configmap/kube-root-ca.crt')
      const generations = await inPayments('get', 'cronjobs', '--output=jsonpath={.items[*].metadata.generation}')
      expect(new Set(generations.split(' '))).toEqual(new Set(['1']))
    })
  }

  /** Three minutes after the label and later. */
  function alarm(): void {
    step('each that is broken is reported within three minutes, once, and no other', async () => {
      const url = await installation().findService('shop', 'receiver')
      const broken = Object.keys(REASONS)
      await eventually(
        'four events at the receiver',
        async () => {
          for (const { body } of (await (await fetch(url)).json()) as Delivered[]) {
            const event = JSON.parse(body) as Down
            const { namespace, name } = event.data.check.kubernetes
            if (namespace !== 'payments') continue
            expect(event.type, name).toBe('check.down')
            if (events.has(name)) expect(event).toEqual(events.get(name))
            events.set(name, event)
          }
          return events.size >= broken.length
        },
        ALARM_MS,
      )
      expect([...events.keys()].sort()).toEqual(broken.sort())
      for (const [name, { data }] of events) {
        expect(Date.parse(data.detected_at) - labelledAt, name).toBeLessThan(ALARM_MS)
        const late = Date.parse(data.detected_at) - Date.parse(data.occurred_at)
        print(
          `${name}: ${data.reason}, detected after ${late} ms: ${data.detail ?? data.last_ping?.body?.split('\n')[0]}`,
        )
        expect(data.check.kubernetes).toEqual({
          cluster: 'default',
          namespace: 'payments',
          name,
          source: { kind: 'CronJob', name },
          run: expect.stringMatching(new RegExp(`^${name}-\\d+$`)),
        })
      }
    })

    step('the text of the one that fails ends with its log', async () => {
      const { data } = events.get('fails')!
      const { run } = data.check.kubernetes
      expect({ reason: data.reason, exitCode: data.last_ping?.exit_code }).toEqual({ reason: 'failed', exitCode: 3 })
      expect(data.detail).toBe('container job failed (exit code 3)')
      const [first, condition, pod, ...output] = data.last_ping!.body!.split('\n')
      expect(first).toBe(data.detail)
      expect(condition).toBe(`Job ${run} failed: BackoffLimitExceeded: Job has reached the specified backoff limit`)
      expect(pod).toMatch(new RegExp(`^pod ${run}-[a-z0-9]{5} on node \\S+, attempt 1 of 1$`))
      const log = 'pg_dump: error: connection to server failed: Connection refused'
      expect(output).toEqual(['--- last lines of container job', log])
    })

    step('the text of the one that needed too much memory says so', async () => {
      const { data } = events.get('out-of-memory')!
      const { run } = data.check.kubernetes
      expect({ reason: data.reason, exitCode: data.last_ping?.exit_code }).toEqual({ reason: 'failed', exitCode: 137 })
      const [first, condition, pod, ...output] = data.last_ping!.body!.split('\n')
      expect(first).toBe('container job was OOMKilled (exit code 137)')
      expect(condition).toBe(`Job ${run} failed: BackoffLimitExceeded: Job has reached the specified backoff limit`)
      expect(pod).toMatch(new RegExp(`^pod ${run}-[a-z0-9]{5} on node \\S+, attempt 1 of 1$`))
      expect(output).toEqual([])
    })

    step('the one without an image is missed, and says what it waits for', async () => {
      const { data } = events.get('no-image')!
      expect(data.reason).toBe('missed')
      expect(data.detail).toMatch(
        /^container job could not start: (ErrImagePull|ImagePullBackOff): .*registry\.invalid/,
      )
      expect(data.last_ping).toBeNull()
    })

    step('the one that hangs overran', async () => {
      const { data } = events.get('hangs')!
      expect(data.reason).toBe('overran')
      expect(data.detail).toMatch(REASONS.hangs!)
    })

    step('the Events of each CronJob and of its HeartbeatCheck give the same reason', async () => {
      for (const [name, reason] of Object.entries(REASONS))
        for (const about of [`cronjob/${name}`, `hbc/${name}`])
          await eventually(
            `the reason in the Events of ${about}`,
            async () => reason.test(await inPayments('events', '--for', about, '--types=Warning')),
            SOON_MS,
          )
    })

    step('without the label they are gone, and with it they have their checks again', async () => {
      const before = await checkIds()
      await stage().kubectl('label', 'namespace', 'payments', `${WATCH}-`)
      await eventually('no HeartbeatCheck', async () => (await listChecks()).length === 0, SOON_MS)
      await stage().kubectl('label', 'namespace', 'payments', `${WATCH}=true`)
      await eventually('the same checks', async () => (await checkIds()) === before, SOON_MS)
    })

    step('suspended, they leave the node to what follows', async () => {
      for (const name of CRON_JOBS) await inPayments('patch', 'cronjob', name, '--patch', '{"spec": {"suspend": true}}')
      await inPayments('delete', 'jobs', '--all')
    })
  }

  return { watched, alarm }
}
