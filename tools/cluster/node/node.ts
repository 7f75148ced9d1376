/**
 * A Kubernetes cluster of one node, in which pods run: containerd, kubelet, scheduler, proxy and DNS beside the control plane of
 * `control-plane.ts`, all of it in a box (`box.sh`) that leaves nothing on this machine. It needs Linux and root. From the host,
 * pods and Services answer at their own addresses. Pods reach the host at 10.97.0.1 and nothing beyond it, and NetworkPolicies are
 * not enforced. One at a time: another start waits.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { mkdir, mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { findNodePrograms } from '../../programs/find.ts'
import type { Note } from '../../programs/programs.ts'
import { findTool } from '../../programs/tools.ts'
import type { ClusterAccess } from '../control-plane-access.ts'
import type { BoxSettings } from './box.ts'
import { findRuntime } from './runtime.ts'

export interface NodeOptions {
  /** OCI archives, `pause` among them: the node has no registry. */
  readonly images: readonly string[]
  /** Files or folders of CustomResourceDefinitions, there before anything else happens. */
  readonly crds?: readonly string[]
  /** Where the programs' logs go; default: a folder that is gone with the node. */
  readonly logFolder?: string
  /** One line for a person; default: stderr. */
  readonly note?: Note
}

export interface ClusterNode extends ClusterAccess, AsyncDisposable {
  /** For volumes (hostPath); gone with the node. */
  readonly volumes: string
  /** Ends everything at once (kill -9), and leaves nothing. */
  stop(): Promise<void>
}

/** What keeps a machine from running a node; the message says what to do. */
export class NodeImpossible extends Error {
  override readonly name = 'NodeImpossible'
}

const QUOTED_LINES = 15
const BOX = fileURLToPath(new URL('./box.sh', import.meta.url))
const PROGRAM = fileURLToPath(new URL('./box.ts', import.meta.url))

/** Resolves when pods can run: about 8 s after the programs have been found, or built, which takes minutes the first time. */
export async function startNode(options: NodeOptions): Promise<ClusterNode> {
  if (process.platform !== 'linux' || process.geteuid?.() !== 0)
    throw new NodeImpossible(
      'A node needs Linux and root: namespaces, mounts, cgroups. Run this as root (sudo npm ...).',
    )
  const { images, crds = [], note = (line) => process.stderr.write(`${line}\n`) } = options
  const programs = await findNodePrograms({ note })
  const coredns = await findTool('coredns', { note })
  const runtime = await findRuntime(note)
  const folder = await mkdtemp(join(tmpdir(), 'heartbeat-node-'))
  const logs = options.logFolder ?? join(folder, 'logs')
  const volumes = join(folder, 'volumes')
  for (const place of [logs, volumes]) await mkdir(place, { recursive: true })
  const settings: BoxSettings = { folder, logs, programs, coredns, images, crds, ...runtime }
  const logFile = join(logs, 'box.log')
  const log = openSync(logFile, 'a')
  // What the programs of the box keep for a while is in the folder too, and goes with it.
  const command = ['/usr/bin/env', `TMPDIR=${folder}`, process.execPath, PROGRAM, JSON.stringify(settings)]
  const box = spawn('/bin/sh', [BOX, folder, ...command], {
    detached: true, // out of reach of the terminal's Ctrl-C; it ends when its input does, also when this process is killed
    env: { ...process.env, ...runtime.environment },
    stdio: ['pipe', 'pipe', log],
  })
  closeSync(log)
  const [input, output] = [box.stdin!, box.stdout!]
  input.on('error', () => {})
  const ended = once(box, 'exit')
  const stop = async () => {
    input.end()
    await ended
    if (box.exitCode !== 0) throw new Error(`the node left something behind; ${await quote(logFile)}`)
  }
  try {
    const access = await readAccess(output, logFile, note)
    return { ...access, volumes, stop, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop().catch(() => {}) // what kept it from starting says more
    throw error
  }
}

/** The box's line of JSON; those before it are for people. When it ends without one, the message quotes what it said. */
async function readAccess(output: Readable, logFile: string, note: Note): Promise<ClusterAccess> {
  for await (const line of createInterface({ input: output }))
    if (line.startsWith('{')) return JSON.parse(line) as ClusterAccess
    else note(line)
  throw new Error(`the node ended before it was ready; ${await quote(logFile)}`)
}

async function quote(logFile: string): Promise<string> {
  const text = await readFile(logFile, 'utf8').catch(() => '') // gone with the folder
  return `it said:\n${text.trimEnd().split('\n').slice(-QUOTED_LINES).join('\n')}`
}
