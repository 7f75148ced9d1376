/** Debian's container runtime and what goes with it, unpacked into the user's cache folder. */

import { join } from 'node:path'
import { fetchDebianPackages, unpackedEnvironment } from '../../programs/debian-packages.ts'
import type { Note } from '../../programs/programs.ts'

/** nftables is kube-proxy's tool, iproute2 the box's. */
const PACKAGES = ['containerd', 'runc', 'containernetworking-plugins', 'nftables', 'iproute2']

export interface RuntimePrograms {
  readonly containerd: string
  /** containerd's command line client. */
  readonly ctr: string
  /** The folder of the CNI plugins. */
  readonly plugins: string
  /** Where they find each other, and their libraries. */
  readonly environment: Readonly<Record<string, string>>
}

/** A first download is reported line by line. Throws DebianPackagesMissing. */
export async function findRuntime(note: Note): Promise<RuntimePrograms> {
  const root = await fetchDebianPackages({
    name: 'container-runtime',
    packages: PACKAGES,
    scope: 'missing',
    note,
    otherwise: 'Leave out the tests that need a node',
  })
  const { PATH = '', LD_LIBRARY_PATH = '' } = unpackedEnvironment(root)
  return {
    containerd: join(root, 'usr', 'bin', 'containerd'),
    ctr: join(root, 'usr', 'bin', 'ctr'),
    plugins: join(root, 'usr', 'lib', 'cni'),
    environment: { PATH, LD_LIBRARY_PATH },
  }
}
