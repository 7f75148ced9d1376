/**
 * The whole story on a real node: what a user of the chart does, from the README's `helm install` to `helm uninstall`
 * and back, with jobs that run every minute, break and fall silent, CronJobs that are watched without a change, and a
 * PostgreSQL that goes away. Each test is a step that needs those before it. All full minutes pass together, those of
 * the guide and those of the story's own jobs.
 */

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { PacedLoad, PacedResult } from '../../tools/bench/paced-load.ts'
import { listBlocksOf } from '../support/documents.ts'
import { eventually } from '../support/until.ts'
import { aCronJob, aHeartbeatCheck, aNamespace, aReceiver, type Delivered } from './cast.ts'
import { playCronJobs } from './cronjobs.ts'
import { playGuide } from './guide.ts'
import { importMonitor } from './import.ts'
import { CHART, createInstallation, type Installation, LOGS, NAMESPACE, RELEASE, VALUES } from './installation.ts'
import { killNode } from './machine.ts'
import { playOutage } from './outage.ts'
import { openStage, type Stage } from './stage.ts'
import { sendSteadily } from './steady-pings.ts'
import { openStory } from './steps.ts'

const PACED_LOAD = fileURLToPath(new URL('../../tools/bench/paced-load.ts', import.meta.url))
/** Long enough for a start of the job at the next full minute, its container, and a delivery. */
const NEXT_RUN_MS = 100_000
const GRACE_SECONDS = 30
const WORKS = 'echo dumped the shop'
const BREAKS =
  'echo dumping payments ...; echo "pg_dump: error: connection to server failed: Connection refused"; exit 1'
const MINUTE_MS = 60_000

let stage: Stage
let installation: Installation
let secret: string
/** By check, how many events at the receiver a step has looked at. */
const seen = new Map<string, number>()

const story = openStory(async () => {
  if (stage === undefined) return 'the node did not start'
  return `logs are kept in ${await stage.keepLogs()}`
})
const { step, print } = story
const [theStage, theInstallation] = [() => stage, () => installation]
const guide = playGuide(theStage, story)
const cronJobs = playCronJobs(theStage, theInstallation, story)
const outage = playOutage(theStage, theInstallation, story)

const install = () =>
  stage.helm('install', RELEASE, CHART, '--namespace', NAMESPACE, '--create-namespace', '--wait', ...VALUES, ...LOGS)
const inShop = (...args: string[]) => stage.kubectl('--namespace', 'shop', ...args)
const inMonitoring = (...args: string[]) => stage.kubectl('--namespace', NAMESPACE, ...args)

/**
 * The next webhook about this check of the shop, when its signature holds; the receiver's own words for what it got.
 */
async function receiveEvent(name: string, limitMs: number) {
  const url = await installation.findService('shop', 'receiver')
  const next = await eventually(
    'an event at the receiver',
    async () => {
      const delivered = (await (await fetch(url)).json()) as Delivered[]
      const ofCheck = delivered.filter(({ body }) => {
        const { kubernetes } = JSON.parse(body).data.check
        return kubernetes?.namespace === 'shop' && kubernetes.name === name
      })
      return ofCheck[seen.get(name) ?? 0]
    },
    limitMs,
  )
  seen.set(name, (seen.get(name) ?? 0) + 1)
  return new Webhook(secret).verify(next.body, next.headers) as {
    readonly type: string
    readonly data: {
      readonly reason: string
      readonly occurred_at: string
      readonly detected_at: string
      readonly check: { readonly name: string; readonly kubernetes: object }
      readonly last_ping: { readonly exit_code: number | null; readonly body: string | null } | null
    }
  }
}

const runs = (script: string) => JSON.stringify([{ op: 'replace', path: SCRIPT, value: script }])
const SCRIPT = '/spec/jobTemplate/spec/template/spec/containers/0/command/4'

describe('on a node of its own', () => {
  beforeAll(async () => {
    const from = performance.now()
    stage = await openStage()
    installation = createInstallation(stage)
    await stage.makeVolume('data', 999)
    await stage.applyManifest(aNamespace(NAMESPACE))
    print(`${((performance.now() - from) / 1_000).toFixed(1)} s for images and node`)
  })
  afterAll(async () => {
    await outage.stop()
    await stage?.[Symbol.asyncDispose]()
  })

  guide.begin()
  cronJobs.watched()

  step('two CronJobs that curl their published URL every minute begin beside those of the guide', async () => {
    await stage.applyManifest(aNamespace('shop'))
    await stage.applyManifest(aReceiver('shop', 'receiver'))
    await inShop('rollout', 'status', 'deployment/receiver', '--timeout=60s')
    const api = await installation.openApi()
    const config = { url: 'http://receiver.shop.svc/hook' }
    const { status, body } = await api.post('/channels', { kind: 'webhook', name: 'receiver of the shop', config })
    expect({ status, body }).toMatchObject({ status: 201 })
    secret = body.secret
    const spec = { schedule: '* * * * *', graceSeconds: GRACE_SECONDS }
    for (const name of ['backup', 'report'])
      await stage.applyManifest([aHeartbeatCheck('shop', name, spec), aCronJob('shop', name, WORKS)])
    await inShop('wait', '--for=condition=Ready', 'hbc', '--all', '--timeout=30s')
  })

  step('api, controller and a PostgreSQL are up, under Pod Security restricted', async () => {
    const pods = (await installation.listPods()).map(({ component }) => component).sort()
    expect(pods).toEqual(['api', 'api', 'controller', 'controller', 'postgresql'])
  })

  step('the three commands of its notes work as they are pasted, helm test among them', async () => {
    const notes = await stage.helm('get', 'notes', RELEASE, '--namespace', NAMESPACE)
    const commands = notes.match(/(?<=\n\n)( {2}.*\n)+/g)!.slice(0, 3)
    const [tested, applied, pinged] = [
      await stage.shell(commands[0]!),
      await stage.shell(commands[1]!),
      await stage.shell(commands[2]!),
    ]
    expect(tested).toMatch(/Phase:\s+Succeeded/)
    expect(applied).toContain('heartbeatcheck.heartbeat-operator.io/hello condition met')
    expect(pinged).toMatch(/^200\n/)
    await stage.kubectl('wait', '--for=condition=Up', 'hbc/hello', '--timeout=30s')
  })

  outage.prepare()

  step('their first runs take their checks up', async () => {
    await inShop('wait', '--for=condition=Up', 'hbc', '--all', `--timeout=${NEXT_RUN_MS}ms`)
    await inShop('patch', 'cronjob', 'backup', '--type=json', '--patch', runs(BREAKS))
    await inShop('patch', 'cronjob', 'report', '--patch', '{"spec": {"suspend": true}}')
  })

  step('when the job breaks, the receiver has a signed event with its error text', async () => {
    const { type, data } = await receiveEvent('backup', NEXT_RUN_MS)
    expect({ type, reason: data.reason }).toEqual({ type: 'check.down', reason: 'failed' })
    expect(data.check.kubernetes).toEqual({ cluster: 'default', namespace: 'shop', name: 'backup' })
    expect(data.last_ping).toMatchObject({ exit_code: 1 })
    expect(data.last_ping?.body).toContain('pg_dump: error: connection to server failed: Connection refused')
    await inShop('wait', '--for=condition=Up=false', 'hbc/backup', '--timeout=30s')
    await inShop('patch', 'cronjob', 'backup', '--type=json', '--patch', runs(WORKS))
  })

  step('the one that is suspended is missed when the grace time of its next run is over', async () => {
    const { type, data } = await receiveEvent('report', 2 * MINUTE_MS)
    expect({ type, reason: data.reason }).toEqual({ type: 'check.down', reason: 'missed' })
    const [occurred, detected] = [Date.parse(data.occurred_at), Date.parse(data.detected_at)]
    expect((occurred - GRACE_SECONDS * 1_000) % MINUTE_MS).toBe(0)
    print(`missed: detected ${detected - occurred} ms after the deadline`)
    await inShop('wait', '--for=condition=Up=false', 'hbc/report', '--timeout=30s')
  })

  step('when it is run by hand, it recovers', async () => {
    await inShop('create', 'job', 'report-by-hand', '--from=cronjob/report')
    const { type, data } = await receiveEvent('report', MINUTE_MS)
    expect({ type, reason: data.reason }).toEqual({ type: 'check.up', reason: 'recovered' })
  })

  step('when the job that broke works again, the receiver gets a recovery', async () => {
    const { type, data } = await receiveEvent('backup', NEXT_RUN_MS)
    expect({ type, reason: data.reason }).toEqual({ type: 'check.up', reason: 'recovered' })
    await inShop('wait', '--for=condition=Up', 'hbc/backup', '--timeout=30s')
    await inShop('patch', 'cronjob', 'backup', '--patch', '{"spec": {"suspend": true}}')
  })

  guide.end()
  cronJobs.alarm()

  step('the commands for a night with an alert reach the management API', async () => {
    const blocks = listBlocksOf('test/e2e/readme.test.ts').filter(({ document }) => document.includes('/operate/'))
    const commands = blocks.map(({ text }) => text)
    const printed = await stage.shell(`set -e; trap 'kill $!' EXIT\n${commands.join('\n')}`)
    const [projects, pending, failed, channels] = printed.match(/^\{.*$/gm)!.map((line) => JSON.parse(line))
    const names = (channels.channels as { name: string }[]).map(({ name }) => name)
    expect(projects.projects).not.toEqual([])
    expect({ pending: pending.deliveries, failed: failed.deliveries }).toEqual({ pending: [], failed: [] })
    expect(names.toSorted()).toEqual(['receiver', 'receiver of the shop'])
  })

  step('a monitor of Uptime Kuma is imported in a pod, by the commands of the document', () => importMonitor(stage))

  step('a rollout restart of the api loses none of 50 pings a second', async () => {
    const { reached } = await installation.readUrl('default', 'hello')
    const pings = sendSteadily(reached, 50)
    await inMonitoring('rollout', 'restart', `deployment/${RELEASE}-api`)
    await inMonitoring('rollout', 'status', `deployment/${RELEASE}-api`, '--timeout=180s')
    // The rollout is done before the last old pod has closed its ports.
    const listAll = () => inMonitoring('get', 'pods', '--selector=app.kubernetes.io/component=api', '--output=name')
    await eventually('the old pods are gone', async () => (await listAll()).trim().split('\n').length === 2, MINUTE_MS)
    const { sent, failures, p99Ms, worstMs } = await pings.stop()
    print(
      `${sent} pings during the restart, ${failures.length} failed; p99 ${p99Ms.toFixed(0)} ms, worst ${worstMs.toFixed(0)} ms`,
    )
    expect(failures).toEqual([])
  })

  step('when the pod of the leader is deleted, the other takes over', async () => {
    const leader = await installation.findLeader()
    expect((await installation.listPods('controller')).map(({ name }) => name)).toContain(leader)
    const from = performance.now()
    await inMonitoring('delete', 'pod', leader, '--wait=false')
    const hasChanged = async () => ![leader, ''].includes(await installation.findLeader())
    await eventually('another leader', hasChanged, MINUTE_MS)
    print(`another leader after ${((performance.now() - from) / 1_000).toFixed(1)} s`)
    await stage.applyManifest(aNamespace('attic'))
    await stage.applyManifest(aHeartbeatCheck('attic', 'sweep', { periodSeconds: 3600 }))
    await stage.kubectl('--namespace', 'attic', 'wait', '--for=condition=Ready', 'hbc/sweep', '--timeout=60s')
    await inMonitoring('rollout', 'status', `deployment/${RELEASE}-controller`, '--timeout=60s')
  })

  step('1,000 pings a second are answered, and no container outgrows its memory', async () => {
    const before = await installation.listPods()
    const rest = await installation.readMemory()
    const folder = await mkdtemp(join(tmpdir(), 'heartbeat-load-'))
    const peaks = new Map<string, number>()
    try {
      const ids = join(folder, 'ids')
      await writeFile(ids, (await makeChecks(100)).join('\n'))
      const url = await installation.findService(NAMESPACE, `${RELEASE}-ping`)
      const load: PacedLoad = { url, ids, perSecond: 1_000, seconds: 20 }
      const loading = promisify(execFile)(process.execPath, [PACED_LOAD, JSON.stringify(load)])
      let isOver = false
      const result = loading.finally(() => {
        isOver = true
      })
      while (!isOver) {
        for (const [{ name }, { workingSet }] of await installation.readMemory())
          peaks.set(name, Math.max(workingSet, peaks.get(name) ?? 0))
        await Promise.race([sleep(500), result.catch(() => {})])
      }
      const { pings, failed, p50Ms, p99Ms } = JSON.parse((await result).stdout) as PacedResult
      print(`${pings} pings in 20 s, ${failed} failed; p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`)
      expect(failed).toBe(0)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
    expect(await installation.listPods()).toEqual(before)
    print('memory (working set, MiB)                       at rest   of it anonymous   under load')
    for (const [{ name }, { workingSet, anonymous }] of rest)
      print(`  ${name.padEnd(44)}  ${mib(workingSet)}          ${mib(anonymous)}        ${mib(peaks.get(name) ?? 0)}`)
  })

  outage.strike()

  step('helm upgrade rolls the change out, and keeps password and volume', async () => {
    const before = await readKept()
    const given = ['--reuse-values', '--set', 'history.maxPings=500', '--wait']
    await stage.helm('upgrade', RELEASE, CHART, '--namespace', NAMESPACE, ...given)
    expect(await readKept()).toEqual(before)
    const starts = await installation.measureStarts()
    print(`api: ${starts.map((seconds) => seconds.toFixed(2)).join(' and ')} s from start to ready`)
    const [pod] = await installation.listPods('api')
    const shown = await inMonitoring('exec', pod!.name, '--', 'node', '--print', 'process.env.HISTORY_MAX_PINGS')
    expect(shown).toBe('500\n')
    const { reached } = await installation.readUrl('shop', 'backup')
    expect((await fetch(reached)).status).toBe(200)
  })

  step('helm uninstall leaves nothing that hangs', async () => {
    urls = await Promise.all(
      WATCHED.map(async ([namespace, name]) => (await installation.readUrl(namespace, name)).published),
    )
    await stage.helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait')
    await eventually(
      'no pod is left',
      async () => (await inMonitoring('get', 'pods', '--output=name')) === '',
      MINUTE_MS,
    )
    expect(await stage.kubectl('get', 'clusterroles,clusterrolebindings', '--output=name')).not.toContain(RELEASE)
    // A check without an operator, and a namespace with another one.
    await stage.kubectl('delete', 'hbc', 'hello', '--timeout=30s')
    await stage.kubectl('delete', 'namespace', 'attic', 'payments', '--timeout=60s')
  })

  step('installed again, every ping URL is what it was', async () => {
    await install()
    await stage.applyManifest(aNamespace('attic'))
    await stage.applyManifest([
      aHeartbeatCheck('attic', 'sweep', { periodSeconds: 3600 }),
      aHeartbeatCheck('default', 'hello', { periodSeconds: 3600 }),
    ])
    for (const [namespace, name] of WATCHED)
      await stage.kubectl('--namespace', namespace, 'wait', '--for=condition=Ready', `hbc/${name}`, '--timeout=60s')
    for (const [index, [namespace, name]] of WATCHED.entries()) {
      const { published, reached } = await installation.readUrl(namespace, name)
      expect(published).toBe(urls[index])
      expect((await fetch(reached)).status).toBe(200)
    }
  })

  step('uninstalled with HeartbeatChecks, namespaces and kind deleted after it, nothing is left', async () => {
    await stage.helm('uninstall', RELEASE, '--namespace', NAMESPACE, '--wait')
    await stage.kubectl('delete', 'crd', 'heartbeatchecks.heartbeat-operator.io', '--timeout=60s')
    await stage.kubectl('delete', 'namespace', NAMESPACE, 'shop', 'attic', '--timeout=120s')
  })
})

it('a node leaves this machine as it was when the process that started it is killed', killNode)

/** Namespace and name of the HeartbeatChecks whose URLs must last. */
const WATCHED = [
  ['shop', 'backup'],
  ['attic', 'sweep'],
  ['default', 'hello'],
] as const
let urls: string[] = []

const mib = (bytes: number) => (bytes / 2 ** 20).toFixed(0).padStart(7)

/** What must outlive an upgrade: the generated secrets, and the volume. */
async function readKept() {
  const claim = `/api/v1/namespaces/${NAMESPACE}/persistentvolumeclaims/data-${RELEASE}-postgresql-0`
  const { metadata, spec } = await installation.get(claim)
  return {
    secrets: [
      await installation.readSecret(NAMESPACE, RELEASE),
      await installation.readSecret(NAMESPACE, `${RELEASE}-postgresql`),
    ],
    claim: [metadata.uid, spec.volumeName],
  }
}

/** Resolves with their public ids. */
async function makeChecks(count: number): Promise<string[]> {
  const api = await installation.openApi()
  const { projects } = (await api.get('/projects')).body
  const ids: string[] = []
  for (let made = 0; made < count; made += 1) {
    const fields = { project_id: projects[0].id, name: `load ${made}`, period_seconds: 3600, grace_seconds: 3600 }
    ids.push((await api.post('/checks', fields)).body.public_id)
  }
  return ids
}
