/** manifests/examples, and the manifests of the dashboard: applied to an API server that has never seen us, and their scripts run against the ping API. */

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { NO_SPEC } from '../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../src/domain/check.ts'
import { renderHeartbeatCheck } from '../../src/http/dashboard/pages/checks/heartbeat-check.ts'
import { snippetsOf } from '../../src/http/dashboard/pages/checks/snippets.ts'
import { type HeartbeatCheck, readHeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import { type ControlPlane, startControlPlane } from '../../tools/cluster/control-plane.ts'
import { startTestApp, type TestApp } from '../support/app.ts'
import { type Cluster, openCluster } from '../support/cluster-client.ts'
import { listBlocksOf } from '../support/documents.ts'
import { eventually } from '../support/until.ts'

const FOLDER = new URL('../../manifests/examples/', import.meta.url).pathname
const DEMO = new URL('../../manifests/demo/cronjobs.yaml', import.meta.url).pathname
const CRDS = new URL('../../crds/', import.meta.url).pathname
const README = new URL('../../manifests/README.md', import.meta.url).pathname

interface CronJob {
  readonly metadata: { readonly name: string }
  readonly spec: {
    readonly schedule: string
    readonly timeZone?: string
    readonly jobTemplate: {
      readonly spec: { readonly template: { readonly spec: { readonly containers: [Container] } } }
    }
  }
}

interface Container {
  readonly envFrom: readonly { readonly secretRef: { readonly name: string; readonly optional?: boolean } }[]
  readonly command: readonly string[]
  readonly args: readonly [string]
}

const files = readdirSync(FOLDER)
/** A job with its check; the other examples have no job. */
const examples = files.flatMap((file) => {
  const [check, cronJob, ...more] = parseAllDocuments(readFileSync(FOLDER + file, 'utf8')).map((document) =>
    document.toJS(),
  )
  if (cronJob?.kind !== 'CronJob') return []
  expect(more).toEqual([])
  return { file, check: check as HeartbeatCheck, cronJob: cronJob as CronJob }
})
const containerOf = ({ cronJob }: (typeof examples)[number]) =>
  cronJob.spec.jobTemplate.spec.template.spec.containers[0]

describe('the examples', () => {
  it('are those that manifests/README.md names', () => {
    const [, table] = readFileSync(README, 'utf8').split('| Example |')
    const named = [...table!.matchAll(/^\| `([\w-]+\.yaml)` \|/gm)].map(([, file]) => file)
    expect(named.sort()).toEqual(files)
    expect(examples).toHaveLength(5)
  })

  it.each(examples)('$file: its check expects the job when the CronJob runs it', (example) => {
    const { check, cronJob } = example
    const read = readHeartbeatCheck(check)
    expect(read).toMatchObject({ ok: true })
    if (!read.ok) return
    expect(cronJob.metadata.name).toBe(check.metadata.name)
    if (check.spec.schedule !== undefined) {
      expect(cronJob.spec.schedule).toBe(check.spec.schedule)
      expect(cronJob.spec.timeZone).toBe(check.spec.timeZone)
    }
    const { kind, name } = read.declaration.publish!
    expect(kind).toBe('Secret')
    expect(containerOf(example).envFrom).toEqual([{ secretRef: { name, optional: true } }])
  })
})

describe('on an API server that has never seen us', () => {
  let plane: ControlPlane
  let cluster: Cluster

  beforeAll(async () => {
    plane = await startControlPlane()
    cluster = openCluster(plane)
    const restricted = {
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
    }
    await cluster.applyManifest({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'jobs', labels: restricted } })
  })
  afterAll(() => plane?.stop())

  const kubectl = (...args: string[]) => cluster.kubectl('-n', 'jobs', ...args)
  const strictly = ['--validate=strict', '--warnings-as-errors']

  it("the README's lines apply them, strictly and without a warning", async () => {
    const [block] = listBlocksOf('test/cluster/examples.test.ts')
    let printed = ''
    for (const line of block!.text.trim().split('\n')) {
      const [program, verb, ...args] = line.split(' ')
      expect(program).toBe('kubectl')
      printed += await kubectl(verb!, ...(verb === 'apply' ? strictly : []), ...args)
    }
    expect(printed).toContain('heartbeatcheck.heartbeat-operator.io/nightly-backup created')
    // From then on in one line. kubectl says of each `stringData` that it is configured.
    const again = await kubectl('apply', ...strictly, '-f', CRDS, '-f', FOLDER)
    expect(
      again
        .trim()
        .split('\n')
        .filter((line) => !line.endsWith(' unchanged')),
    ).toEqual(['secret/team-chat configured'])
    const [, row] = (await kubectl('get', 'hbc', 'nightly-backup')).split('\n')
    expect(row).toMatch(/^nightly-backup +\d+s/)
  })

  it.each(examples)('$file: its pod is let in under the Pod Security standard restricted', async ({ cronJob }) => {
    const { name } = cronJob.metadata
    await kubectl('create', 'job', `${name}-by-hand`, `--from=cronjob/${name}`)
    const pod = await eventually('the pod', async () => {
      const { body } = await cluster.api('GET', `/api/v1/namespaces/jobs/pods?labelSelector=job-name%3D${name}-by-hand`)
      return body.items[0] ?? null
    })
    expect(pod.status.phase).toBe('Pending')
  })

  it('the demo is applied strictly, its CronJobs know nothing of us but annotations, and their pods are let in under restricted', async () => {
    const input = readFileSync(DEMO, 'utf8')
    const printed = await cluster.kubectlWith({ input }, 'apply', ...strictly, '-f', '-')
    expect(printed.match(/^cronjob\.batch\/.* created$/gm)).toHaveLength(6)
    const rest = input.replaceAll(/^#.*|^ +heartbeat-operator\.io\/(grace|max-runtime)-seconds: .*$/gm, '')
    expect(rest).not.toMatch(/heartbeat|HEARTBEAT/)
    const restricted = [
      'label',
      'namespace',
      'payments',
      '--overwrite',
      'pod-security.kubernetes.io/enforce=restricted',
    ]
    expect(await cluster.kubectl(...restricted, '--dry-run=server', '--warnings-as-errors')).toContain('labeled')
    await cluster.kubectl(...restricted)
    await cluster.kubectl('-n', 'payments', 'create', 'job', 'by-hand', '--from=cronjob/suspended')
    await eventually('the pod', async () => {
      const { body } = await cluster.api('GET', '/api/v1/namespaces/payments/pods?labelSelector=job-name%3Dby-hand')
      return body.items[0] ?? null
    })
    await cluster.kubectl('delete', 'namespace', 'payments', '--wait=false')
  })

  const SCHEDULE = { periodSeconds: null, schedule: '30 6 * * MON-FRI', timeZone: 'Europe/Berlin' }
  const PING_URL = 'https://ping.example.com/ping/0b1c3f6e-5a0e-4c39-9a56-5a0d6a6f3f10'

  it.each([
    ['of a check of the API', null],
    ['of a check that Kubernetes manages', { namespace: 'jobs', name: 'nightly-backup' }],
  ])("the dashboard's CronJob %s is applied strictly, and its pod is let in", async (_, kubernetes) => {
    const check = { pingUrl: PING_URL, slug: `a_${'b'.repeat(98)}`, kubernetes, ...SCHEDULE }
    const { text: input } = snippetsOf(check).find(({ id }) => id === 'kubernetes')!
    const name = parseAllDocuments(input).at(-1)!.toJS().metadata.name
    await cluster.kubectlWith({ input }, '-n', 'jobs', 'apply', ...strictly, '-f', '-')
    await kubectl('create', 'job', 'by-dashboard', `--from=cronjob/${name}`)
    await eventually('the pod', async () => {
      const { body } = await cluster.api('GET', '/api/v1/namespaces/jobs/pods?labelSelector=job-name%3Dby-dashboard')
      return body.items[0] ?? null
    })
    await kubectl('delete', 'job', 'by-dashboard')
    await kubectl('delete', 'cronjob', name)
  })

  it.each([
    '<script>alert(1)</script>',
    'a: b # c {{ x }}',
    `it's "quoted" \\n`,
    '\u202egnp.exe \u2028 \ufeff',
    '💾'.repeat(100),
    '夜間バックアップ',
  ])("the dashboard's HeartbeatCheck is applied strictly, whatever its texts: %j", async (text) => {
    const resource = { cluster: 'default', namespace: 'jobs', name: 'by-dashboard' }
    const spec = { ...NO_SPEC, ...SCHEDULE, graceSeconds: 60, maxRuntimeSeconds: 3_600 }
    const texts = { name: text, description: `${text}\n---\n${text}\t`, tags: ['a:b', '-'] }
    const labels = { true: '', 'example.com/1.5': '0x1', team: 'no' }
    const check = { kubernetes: resource, ...NO_TEXTS, ...texts, labels, spec }
    await cluster.kubectlWith({ input: renderHeartbeatCheck(check) }, 'apply', ...strictly, '-f', '-')
    const stored = JSON.parse(await kubectl('get', 'hbc', 'by-dashboard', '-o', 'json')) as HeartbeatCheck
    expect(stored.metadata.labels).toEqual(labels)
    expect(stored.spec).toMatchObject({
      displayName: texts.name.replace(/\p{Bidi_Control}/gu, ''),
      description: texts.description,
      tags: texts.tags,
      schedule: SCHEDULE.schedule,
      timeZone: SCHEDULE.timeZone,
      graceSeconds: 60,
      maxRuntimeSeconds: 3_600,
    })
  })
})

describe('the script of', () => {
  let app: TestApp

  beforeAll(async () => {
    app = await startTestApp()
  })
  afterAll(() => app?.close())

  const RUN_ID = randomUUID()

  /** As the container would run it. `job`: what is put in the place of the reader's job. */
  async function run(file: string, url: string, job: string) {
    const { command, args } = containerOf(examples.find((example) => example.file === file)!)
    const script = args[0].replace(/^your_job\(\) .*$/m, () => `your_job() { ${job}; }`)
    expect(script).toContain(job)
    const [program, ...options] = command
    const env = { PATH: process.env.PATH ?? '', NO_PROXY: '127.0.0.1', HEARTBEAT_URL: url, RUN_ID }
    const child = spawn(program!, [...options, script], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    const exit = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve))
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit])
    return { stdout, stderr, code }
  }

  async function pingsOf(file: string, job: string) {
    const { publicId } = await app.createCheck({ name: `${file} ${randomUUID()}` })
    const ended = await run(file, `${app.pingUrl}/ping/${publicId}`, job)
    return { ...ended, pings: await app.storedPings(publicId) }
  }

  it.each(['nightly-backup.yaml', 'every-minute.yaml'])(
    '%s reports a success, and nothing when the job failed',
    async (file) => {
      const good = await pingsOf(file, 'true')
      expect(good).toMatchObject({ code: 0, stderr: '', pings: [{ type: 'success' }] })
      const bad = await pingsOf(file, 'return 4')
      expect(bad).toMatchObject({ code: 4, pings: [] })
    },
  )

  it('exit-code.yaml reports how the job ended', async () => {
    const good = await pingsOf('exit-code.yaml', 'true')
    expect(good).toMatchObject({ code: 0, pings: [{ type: 'success', exitCode: 0 }] })
    const bad = await pingsOf('exit-code.yaml', 'return 4')
    expect(bad).toMatchObject({ code: 4, pings: [{ type: 'fail', exitCode: 4 }] })
  })

  it('error-text.yaml sends the end of what the job printed', async () => {
    const { code, stdout, pings } = await pingsOf('error-text.yaml', 'seq 10000; echo no space left >&2; return 4')
    expect(code).toBe(4)
    expect(stdout).toContain('no space left')
    expect(pings).toMatchObject([{ type: 'fail', exitCode: 4 }])
    const body = pings[0]!.body!.toString()
    expect(body).toHaveLength(10_000)
    expect(body).toMatch(/9999\n10000\nno space left\n$/)
  })

  it('max-runtime.yaml reports its start and its end under one run id', async () => {
    const { code, pings } = await pingsOf('max-runtime.yaml', 'return 4')
    expect(code).toBe(4)
    expect(pings).toMatchObject([
      { type: 'start', runId: RUN_ID },
      { type: 'fail', exitCode: 4, runId: RUN_ID },
    ])
  })

  it.each(examples)('$file runs the job all the same when there is no Secret', async ({ file }) => {
    const { code, stdout, stderr } = await run(file, '', 'echo done')
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'done\n' })
    expect(stderr).toContain('the heartbeat could not be sent')
  })
})
