/** What the test bed runs, and what the finder and the builder of it share. */

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const PROGRAM_NAMES = ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'] as const
export type ProgramName = (typeof PROGRAM_NAMES)[number]

/** Besides a control plane and a container runtime, what makes a node. */
export const NODE_PROGRAM_NAMES = ['kubelet', 'kube-proxy', 'kube-scheduler'] as const
export type NodeProgramName = (typeof NODE_PROGRAM_NAMES)[number]

export interface Programs<Name extends string = ProgramName> {
  /** Absolute. */
  readonly paths: Readonly<Record<Name, string>>
  /** Of Kubernetes, for people: `1.36.3`. */
  readonly version: string
}

/**
 * Which Kubernetes: `newest` is what most tests run against, `oldest` is the oldest that we support. That is 1.33, the first
 * in which all that the CRD is built on is final: CEL rules (since 1.29), selectableFields (since 1.32) and validation
 * ratcheting (since 1.33), without which a rule could never be tightened. Upstream ended it in June 2026, but hosted
 * clusters have it into 2027 (EKS: until 29 July).
 */
export type Pin = 'newest' | 'oldest'

/** The folder of a pin's go.mod and go.sum. */
export const moduleFolder = (pin: Pin) => fileURLToPath(new URL(pin === 'newest' ? '.' : './oldest/', import.meta.url))

/** The version is written in one place, go.mod. */
export async function readPinnedVersion(pin: Pin): Promise<string> {
  return await readRequiredVersion(moduleFolder(pin), 'k8s.io/kubernetes')
}

/** `1.36.3` of a module that the go.mod in `folder` requires. Throws ProgramsError. */
export async function readRequiredVersion(folder: string, module: string): Promise<string> {
  const file = join(folder, 'go.mod')
  const required = (await readFile(file, 'utf8'))
    .split('\n')
    .map((line) => line.replace(/^require\b/, '').trim())
    .find((line) => line.startsWith(`${module} v`))
  const version = required === undefined ? undefined : / v(\d+\.\d+\.\d+)\b/.exec(required)?.[1]
  if (version === undefined) throw new ProgramsError(`${file} requires no ${module}: take it from the repository`)
  return version
}

/** What kept the programs from being had; the message says what to install or set. */
export class ProgramsError extends Error {
  override readonly name = 'ProgramsError'
}

export type Environment = Readonly<Record<string, string | undefined>>

/** One line for a person. */
export type Note = (line: string) => void
