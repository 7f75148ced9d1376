/**
 * The pod of PostgreSQL is deleted while jobs ping (design, section 10), as steps of the story: each ping is answered
 * with 200 and is in the history, and the receiver of notifications hears nothing of these jobs.
 */

import { expect } from 'vitest'
import { eventually } from '../support/until.ts'
import type { Delivered } from './cast.ts'
import { type Installation, NAMESPACE, RELEASE } from './installation.ts'
import type { Stage } from './stage.ts'
import { type SteadyPings, sendSteadily } from './steady-pings.ts'
import type { Story } from './steps.ts'

const MINUTE_MS = 60_000
const JOBS = 20
/** Of each job; its check goes down when none has come for 20 seconds. */
const PINGS_PER_SECOND = 2
const CHECK = { period_seconds: 15, grace_seconds: 5 }

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

/** Each registers its steps where it is called. */
export function playOutage(stage: () => Stage, installation: () => Installation, { step, print }: Story) {
  const checks: { id: string; publicId: string }[] = []
  const jobs: SteadyPings[] = []
  const inMonitoring = (...args: string[]) => stage().kubectl('--namespace', NAMESPACE, ...args)

  /** A metric of each replica of the api that has this line. */
  async function readMetric(name: string): Promise<number[]> {
    const pods = await installation().listPods('api')
    return Promise.all(
      pods.map(async (pod) => {
        const script = `fetch('http://127.0.0.1:9090/metrics').then((r) => r.text()).then(console.log)`
        const text = await inMonitoring('exec', pod.name, '--', 'node', '--eval', script)
        const values = text.split('\n').filter((line) => line.startsWith(name))
        return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
      }),
    )
  }

  /** More than a minute before the rest: only then does every replica know a check. */
  function prepare(): void {
    step('jobs have checks, and no ping yet', async () => {
      const api = await installation().openApi()
      const { projects } = (await api.get('/projects')).body
      for (let made = 0; made < JOBS; made += 1) {
        const { body } = await api.post('/checks', { project_id: projects[0].id, name: `job ${made}`, ...CHECK })
        checks.push({ id: body.id, publicId: body.public_id })
      }
    })
  }

  function strike(): void {
    step('the pod of PostgreSQL is deleted while jobs ping, and the pods of the api stay ready', async () => {
      const base = await installation().findService(NAMESPACE, `${RELEASE}-ping`)
      for (const { publicId } of checks) jobs.push(sendSteadily(`${base}/ping/${publicId}`, PINGS_PER_SECOND))
      const api = await installation().openApi()
      const isUp = async ({ id }: { id: string }) => (await api.get(`/checks/${id}`)).body.status === 'up'
      for (const check of checks) await eventually('each check is up', () => isUp(check))
      const from = performance.now()
      const pods = await installation().listPods('api')
      // By itself PostgreSQL waits for its clients, for as long as the pod may.
      await inMonitoring('delete', 'pod', `${RELEASE}-postgresql-0`, '--wait=true', '--grace-period=5')
      const seconds = () => ((performance.now() - from) / 1_000).toFixed(1)
      print(`the pod of PostgreSQL is gone after ${seconds()} s`)
      await inMonitoring('rollout', 'status', `statefulset/${RELEASE}-postgresql`, '--timeout=180s')
      print(`PostgreSQL is back after ${seconds()} s`)
      const isReadBack = async () => sumOf(await readMetric('heartbeat_spool_pings')) === 0
      await eventually('nothing waits on disk', isReadBack, 2 * MINUTE_MS)
      print(`all is read back after ${seconds()} s`)
      expect(await installation().listPods('api')).toEqual(pods)
    })

    step('no ping is lost, and there is no alarm', async () => {
      const stoppedAt = Date.now()
      const results = await Promise.all(jobs.map((pings) => pings.stop()))
      const spooled = sumOf(await readMetric('heartbeat_pings_total{type="success",result="spooled"}'))
      const worst = Math.max(...results.map(({ worstMs }) => worstMs))
      print(`${sumOf(results.map(({ sent }) => sent))} pings, ${spooled} on disk; worst ${worst.toFixed(0)} ms`)
      expect(results.flatMap(({ failures }) => failures)).toEqual([])
      expect(spooled).toBeGreaterThan(0)
      const api = await installation().openApi()
      const recorded = await Promise.all(
        checks.map(async ({ id }) => (await api.get(`/checks/${id}`)).body.pings_total),
      )
      expect(recorded).toEqual(results.map(({ sent }) => sent))
      const url = await installation().findService('shop', 'receiver')
      const events = ((await (await fetch(url)).json()) as Delivered[]).map(({ body }) => JSON.parse(body))
      const ofJobs = events.filter(({ data }) => checks.some(({ id }) => id === data.check.id))
      // The checks go down now, because their jobs have stopped.
      const before = ofJobs.filter(({ data }) => Date.parse(data.occurred_at) < stoppedAt)
      expect(before.map(({ type }) => type)).toEqual([])
    })
  }

  return {
    prepare,
    strike,
    /** Ends what pings when a step has failed. */
    stop: async () => void (await Promise.all(jobs.map((pings) => pings.stop()))),
  }
}
