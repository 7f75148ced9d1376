/** How the programs of Kubernetes are built: those of a control plane, and those of a node. */

import { join } from 'node:path'
import type { Build, GoProgram } from './build.ts'
import { cacheFolder } from './places.ts'
import {
  type Environment,
  moduleFolder,
  NODE_PROGRAM_NAMES,
  type NodeProgramName,
  type Note,
  type Pin,
  PROGRAM_NAMES,
  type ProgramName,
  readPinnedVersion,
} from './programs.ts'

type Name = ProgramName | NodeProgramName

const ETCD: GoProgram = { name: 'etcd', source: 'go.etcd.io/etcd/server/v3' }

/** Kubernetes has its version from the linker; without it, server and clients would call themselves v0.0.0. */
function describeProgram(name: Name, version: string): GoProgram {
  if (name === 'etcd') return ETCD
  const [major = '', minor = ''] = version.split('.')
  const facts = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' }
  const variables = Object.entries(facts).map(([fact, value]) => [`k8s.io/component-base/version.${fact}`, value])
  return { name, source: `k8s.io/kubernetes/cmd/${name}`, variables: Object.fromEntries(variables) }
}

/** What a build of either set shares. */
async function describeBuild(pin: Pin, environment: Environment, note: Note, names: readonly Name[]) {
  const version = await readPinnedVersion(pin)
  return {
    version,
    title: `Kubernetes ${version}`,
    module: moduleFolder(pin),
    folder: join(cacheFolder(environment), `kubernetes-${version}`, 'bin'),
    programs: names.map((name) => describeProgram(name, version)),
    environment,
    note,
  }
}

type KubernetesBuild = Build & { readonly version: string }

/** `reason`: why programs that are installed already will not do. */
export async function describeControlPlane(
  pin: Pin,
  environment: Environment,
  note: Note,
  reason: string,
): Promise<KubernetesBuild> {
  const shared = await describeBuild(pin, environment, note, PROGRAM_NAMES)
  return {
    ...shared,
    reason,
    need: `the programs of a Kubernetes control plane (${PROGRAM_NAMES.join(', ')})`,
    cost: 'about 6 minutes on two cores, with 100 MB of downloads',
    otherwise: `set KUBEBUILDER_ASSETS to a folder that holds all four, of Kubernetes ${shared.version}`,
  }
}

export async function describeNode(pin: Pin, environment: Environment, note: Note): Promise<KubernetesBuild> {
  const shared = await describeBuild(pin, environment, note, NODE_PROGRAM_NAMES)
  return {
    ...shared,
    reason: `no ${NODE_PROGRAM_NAMES.join(', ')} of Kubernetes ${shared.version} yet`,
    need: `the programs of a Kubernetes node (${NODE_PROGRAM_NAMES.join(', ')})`,
    cost: 'about half a minute on two cores, after the control plane',
    otherwise: 'leave out the tests that need a node',
  }
}
