/** What a node could leave behind on this machine. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect } from 'vitest'
import { buildImages } from '../../tools/images/images.ts'
import { eventually } from '../support/until.ts'

const NODE = new URL('../../tools/cluster/node/node.ts', import.meta.url).href
const POD_MS = 60_000

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

/** Throws when a node leaves something behind whose process was killed. */
export async function killNode(): Promise<void> {
  const images = [...(await buildImages({ names: ['pause'] })).values()]
  const before = await describeMachine()
  const script = `
    const { startNode } = await import(${JSON.stringify(NODE)})
    console.log((await startNode({ images: ${JSON.stringify(images)} })).server)
    setInterval(() => {}, 1_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  expect(await once(createInterface(child.stdout), 'line')).toEqual([expect.stringContaining('https://10.97.0.2:')])
  expect((await describeMachine()).links).not.toEqual([])
  child.kill('SIGKILL')
  const isAsBefore = async () => JSON.stringify(await describeMachine()) === JSON.stringify(before)
  await eventually('the machine is as it was', isAsBefore, POD_MS)
}
