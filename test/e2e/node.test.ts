/** The node itself: what the story relies on, and that it leaves this machine as it was. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startNode } from '../cluster/node/node.ts'
import { buildImages } from '../images/images.ts'
import { openCluster, waitFor } from '../support/cluster-client.ts'

const NODE = new URL('../cluster/node/node.ts', import.meta.url).href
const POD_MS = 60_000

let images: string[]
let before: Record<string, unknown>

/** What a node could leave behind. */
async function describeMachine() {
  const read = (path: string) => readFile(path, 'utf8').catch(() => null)
  const folders = await readdir(tmpdir())
  const processes = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const commands = await Promise.all(processes.map((pid) => read(join('/proc', pid, 'cmdline'))))
  return {
    mounts: (await read('/proc/self/mounts'))?.trim().split('\n'),
    links: (await readdir('/sys/class/net')).filter((name) => name.startsWith('heartbeat-')),
    routes: ((await read('/proc/net/route')) ?? '').match(/^\S+\t\w+/gm),
    cgroups: (await readdir('/sys/fs/cgroup')).filter((name) =>
      existsSync(join('/sys/fs/cgroup', name, 'heartbeat-node')),
    ),
    settings: await Promise.all(
      [
        'vm/overcommit_memory',
        'vm/panic_on_oom',
        'kernel/panic',
        'kernel/panic_on_oops',
        'kernel/keys/root_maxkeys',
      ].map((name) => read(join('/proc/sys', name))),
    ),
    places: ['/var/lib/cni', '/var/lib/kubelet', '/opt/containerd'].map(existsSync),
    folders: folders.filter((name) => /^heartbeat-(node|e2e)-/.test(name)),
    processes: commands.filter((command) => command?.includes('heartbeat-node-')),
  }
}

beforeAll(async () => {
  images = [...(await buildImages({ names: ['pause', 'job'] })).values()]
  before = await describeMachine()
})

describe('a node', () => {
  let node: Awaited<ReturnType<typeof startNode>>
  beforeAll(async () => {
    node = await startNode({ images })
  })
  afterAll(() => node?.stop())

  it('runs pods that know names and reach Services', async () => {
    const { kubectl, applyManifest } = openCluster(node)
    const script = 'id -u; curl -sk -m 10 https://kubernetes.default.svc/version'
    const container = { name: 'asks', image: 'localhost/job:dev', command: ['sh', '-c', script] }
    const spec = { restartPolicy: 'Never', containers: [container] }
    await applyManifest({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'asks' }, spec })
    const readPhase = () => kubectl('get', 'pod', 'asks', '--output=jsonpath={.status.phase}')
    await waitFor('the pod has ended', async () => (await readPhase()) === 'Succeeded', POD_MS)
    const said = await kubectl('logs', 'asks')
    expect(said).toMatch(/^65532\n/)
    // Nobody is let in without saying who they are; but it is the API server that says so.
    expect(said).toContain('"reason": "Unauthorized"')
  })

  it('lets another one wait until it has stopped, and leaves nothing', async () => {
    const notes: string[] = []
    const other = startNode({ images, note: (line) => notes.push(line) })
    await waitFor('the other one says that it waits', () => notes.length > 0)
    expect(notes).toEqual(['another node runs, or is being stopped: waiting for it'])
    await node.stop()
    const next = await other
    expect((await openCluster(next).api('GET', '/api/v1/nodes/node1')).status).toBe(200)
    await next.stop()
    expect(await describeMachine()).toEqual(before)
  })
})

it('leaves nothing when the process that started it is killed', async () => {
  const script = `
    const { startNode } = await import(${JSON.stringify(NODE)})
    console.log((await startNode({ images: ${JSON.stringify(images)} })).server)
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  expect(await once(createInterface(child.stdout), 'line')).toEqual([expect.stringContaining('https://10.97.0.2:')])
  expect((await describeMachine()).links).not.toEqual([])
  child.kill('SIGKILL')
  const isAsBefore = async () => JSON.stringify(await describeMachine()) === JSON.stringify(before)
  await waitFor('the machine is as it was', isAsBefore, POD_MS)
})
