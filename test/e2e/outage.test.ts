/**
 * The pod of PostgreSQL is deleted while jobs ping (design, section 10): each ping is answered with 200 and is in the history, and the receiver of
 * notifications hears nothing. In a file of its own, because it is about the whole installation and not about one HeartbeatCheck. About four minutes.
 */

import { afterAll, beforeAll, describe, expect } from 'vitest'
import { eventually } from '../support/until.ts'
import { aNamespace, aReceiver, type Delivered } from './cast.ts'
import { CHART, createInstallation, type Installation, NAMESPACE, RELEASE, VALUES } from './installation.ts'
import { openStage, type Stage } from './stage.ts'
import { type SteadyPings, sendSteadily } from './steady-pings.ts'
import { openStory } from './steps.ts'

const MINUTE_MS = 60_000
const JOBS = 20
/** Of each job; its check goes down when none has come for 20 seconds. */
const PINGS_PER_SECOND = 2
const CHECK = { period_seconds: 15, grace_seconds: 5 }

let stage: Stage
let installation: Installation
const jobs: { id: string; pings: SteadyPings }[] = []

const { step, print } = openStory(async () => {
  if (stage === undefined) return 'the node did not start'
  return `logs are kept in ${await stage.keepLogs()}`
})
const inMonitoring = (...args: string[]) => stage.kubectl('--namespace', NAMESPACE, ...args)

/** A metric of each replica of the api that has this line. */
async function readMetric(name: string): Promise<number[]> {
  const pods = await installation.listPods('api')
  return Promise.all(
    pods.map(async (pod) => {
      const script = `fetch('http://127.0.0.1:9090/metrics').then((r) => r.text()).then(console.log)`
      const text = await inMonitoring('exec', pod.name, '--', 'node', '--eval', script)
      const values = text.split('\n').filter((line) => line.startsWith(name))
      return values.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0)
    }),
  )
}

const sumOf = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0)

beforeAll(async () => {
  stage = await openStage()
  installation = createInstallation(stage)
})
afterAll(async () => {
  await Promise.all(jobs.map(({ pings }) => pings.stop()))
  await stage?.[Symbol.asyncDispose]()
})

describe('on a node of its own', () => {
  step('jobs ping an installation of two replicas', async () => {
    await stage.makeVolume('data', 999)
    await stage.applyManifest(aNamespace(NAMESPACE))
    await stage.helm('install', RELEASE, CHART, '--namespace', NAMESPACE, '--wait', ...VALUES)
    await stage.applyManifest(aNamespace('shop'))
    await stage.applyManifest(aReceiver('shop', 'receiver'))
    await stage.kubectl('--namespace', 'shop', 'rollout', 'status', 'deployment/receiver', '--timeout=60s')
    const api = await installation.openApi()
    const config = { url: 'http://receiver.shop.svc/hook' }
    expect((await api.post('/channels', { kind: 'webhook', name: 'receiver', config })).status).toBe(201)
    const { projects } = (await api.get('/projects')).body
    const base = await installation.findService(NAMESPACE, `${RELEASE}-ping`)
    for (let made = 0; made < JOBS; made += 1) {
      const { body } = await api.post('/checks', { project_id: projects[0].id, name: `job ${made}`, ...CHECK })
      jobs.push({ id: body.id, pings: sendSteadily(`${base}/ping/${body.public_id}`, PINGS_PER_SECOND) })
    }
    // A check is known to every replica a minute after it was made, at the latest.
    await eventually(
      'each replica knows the checks',
      async () => (await readMetric('heartbeat_known_checks')).every((known) => known >= JOBS),
      2 * MINUTE_MS,
    )
  })

  step('the pod of PostgreSQL is deleted, and the pods of the api stay ready', async () => {
    const from = performance.now()
    const pods = await installation.listPods('api')
    // By itself PostgreSQL waits for its clients, for as long as the pod may.
    await inMonitoring('delete', 'pod', `${RELEASE}-postgresql-0`, '--wait=true', '--grace-period=5')
    const seconds = () => ((performance.now() - from) / 1_000).toFixed(1)
    print(`the pod of PostgreSQL is gone after ${seconds()} s`)
    await inMonitoring('rollout', 'status', `statefulset/${RELEASE}-postgresql`, '--timeout=180s')
    print(`PostgreSQL is back after ${seconds()} s`)
    await eventually(
      'nothing waits on disk',
      async () => sumOf(await readMetric('heartbeat_spool_pings')) === 0,
      2 * MINUTE_MS,
    )
    print(`all is read back after ${seconds()} s`)
    expect(await installation.listPods('api')).toEqual(pods)
  })

  step('no ping is lost, and there is no alarm', async () => {
    const stoppedAt = Date.now()
    const results = await Promise.all(jobs.map(({ pings }) => pings.stop()))
    const spooled = sumOf(await readMetric('heartbeat_pings_total{type="success",result="spooled"}'))
    const worst = Math.max(...results.map(({ worstMs }) => worstMs))
    print(`${sumOf(results.map(({ sent }) => sent))} pings, ${spooled} on disk; worst ${worst.toFixed(0)} ms`)
    expect(results.flatMap(({ failures }) => failures)).toEqual([])
    expect(spooled).toBeGreaterThan(0)
    const api = await installation.openApi()
    const recorded = await Promise.all(jobs.map(async ({ id }) => (await api.get(`/checks/${id}`)).body.pings_total))
    expect(recorded).toEqual(results.map(({ sent }) => sent))
    const delivered = (await (await fetch(await installation.findService('shop', 'receiver'))).json()) as Delivered[]
    // The checks go down now, because their jobs have stopped.
    const before = delivered.filter(({ body }) => Date.parse(JSON.parse(body).data.occurred_at) < stoppedAt)
    expect(before.map(({ body }) => JSON.parse(body).type)).toEqual([])
  })
})
