/** The node's container runtime, by its command line client: what the kubelet has no call for. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { containerdSocket } from './settings.ts'

const run = promisify(execFile)

export interface Runtime {
  /** The node's. */
  readonly folder: string
  /** The client, of the runtime's own version. */
  readonly ctr: string
  readonly environment: Readonly<Record<string, string>>
}

/** Throws while it does not answer. */
export async function askRuntime(runtime: Runtime): Promise<void> {
  await call(runtime, 'version')
}

/** Makes the images of an OCI archive known to the node, by the names that the archive gives them. */
export async function importImage(runtime: Runtime, archive: string): Promise<void> {
  await call(runtime, 'images', 'import', archive)
}

/** The namespace is the kubelet's. */
async function call({ folder, ctr, environment }: Runtime, ...args: string[]): Promise<void> {
  const common = ['--address', containerdSocket(folder), '--namespace', 'k8s.io']
  await run(ctr, [...common, ...args], { env: { ...process.env, ...environment } })
}
