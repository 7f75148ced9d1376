/**
 * Finds the control plane's programs: those of KUBEBUILDER_ASSETS or PATH when the whole set is there, else our own, built
 * once and kept in the user's cache folder.
 */

import { execFile } from 'node:child_process'
import { isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { buildPrograms } from './build.ts'
import { describeControlPlane, describeNode } from './kubernetes.ts'
import { findIn, listPath } from './places.ts'
import {
  type Environment,
  NODE_PROGRAM_NAMES,
  type NodeProgramName,
  type Note,
  type Pin,
  PROGRAM_NAMES,
  type ProgramName,
  type Programs,
  ProgramsError,
  readPinnedVersion,
} from './programs.ts'

const run = promisify(execFile)

/**
 * Reads TEST_KUBERNETES (`newest`, the default, or `oldest`), KUBEBUILDER_ASSETS, PATH and XDG_CACHE_HOME. A first build
 * takes minutes and is reported line by line through `note` (default: stderr). Throws ProgramsError.
 */
export async function findPrograms(options: { environment?: Environment; note?: Note } = {}): Promise<Programs> {
  const { environment = process.env, note = writeNote } = options
  const pin = readPin(environment.TEST_KUBERNETES)
  const found = await searchPrograms(environment)
  const refusal = found.missing ?? (await refuseVersions(found.paths, pin))
  if (refusal === null) {
    const paths = found.paths as Programs['paths']
    return { paths, version: await askVersion(paths['kube-apiserver']) }
  }
  const build = await describeControlPlane(pin, environment, note, refusal)
  await buildPrograms(build)
  return { paths: placesOf(build.folder, PROGRAM_NAMES), version: build.version }
}

/**
 * The programs of a node and those of its control plane, all built by us and of one version: a kubelet may not be newer
 * than its server. Reads TEST_KUBERNETES and XDG_CACHE_HOME; `note` as above. Throws ProgramsError.
 */
export async function findNodePrograms(
  options: { environment?: Environment; note?: Note } = {},
): Promise<Programs<ProgramName | NodeProgramName>> {
  const { environment = process.env, note = writeNote } = options
  const pin = readPin(environment.TEST_KUBERNETES)
  const reason = 'a node takes no control plane but ours'
  const controlPlane = await describeControlPlane(pin, environment, note, reason)
  await buildPrograms(controlPlane)
  const node = await describeNode(pin, environment, note)
  await buildPrograms(node)
  return { paths: placesOf(node.folder, [...PROGRAM_NAMES, ...NODE_PROGRAM_NAMES]), version: node.version }
}

const writeNote: Note = (line) => process.stderr.write(`${line}\n`)

const placesOf = <Name extends string>(folder: string, names: readonly Name[]) =>
  Object.fromEntries(names.map((name) => [name, join(folder, name)])) as Record<Name, string>

function readPin(text = ''): Pin {
  if (text === '' || text === 'newest') return 'newest'
  if (text === 'oldest') return text
  throw new ProgramsError(`TEST_KUBERNETES is ${JSON.stringify(text)}: set it to newest (the default) or to oldest`)
}

interface Found {
  readonly paths: Partial<Record<ProgramName, string>>
  /** Says which programs are in neither place; null when all were found. */
  readonly missing: string | null
}

/** KUBEBUILDER_ASSETS goes before PATH, program by program: envtest's assets hold no kube-controller-manager. */
async function searchPrograms(environment: Environment): Promise<Found> {
  const { KUBEBUILDER_ASSETS: assets = '' } = environment
  const folders = [assets, ...listPath(environment)].filter(isAbsolute)
  const paths: Found['paths'] = {}
  for (const name of PROGRAM_NAMES) {
    const path = await findIn(folders, name)
    if (path !== null) paths[name] = path
  }
  const absent = PROGRAM_NAMES.filter((name) => paths[name] === undefined).join(', ')
  if (absent === '') return { paths, missing: null }
  const place = assets === '' ? 'PATH (KUBEBUILDER_ASSETS is not set)' : `KUBEBUILDER_ASSETS (${assets}) and PATH`
  return { paths, missing: `no ${absent} in ${place}` }
}

/** Says why programs that were found will not do; null when they will. */
async function refuseVersions(paths: Found['paths'], pin: Pin): Promise<string | null> {
  const [serverPath, controllersPath] = [paths['kube-apiserver']!, paths['kube-controller-manager']!]
  const [server, controllers, oldest] = await Promise.all([
    askVersion(serverPath),
    askVersion(controllersPath),
    readPinnedVersion('oldest'),
  ])
  // A controller manager newer than its server is not supported, and an older one is not what we mean to test.
  if (minorOf(controllers) !== minorOf(server))
    return `${serverPath} is ${server} but ${controllersPath} is ${controllers}`
  if (minorOf(server) < minorOf(oldest)) return `${serverPath} is ${server}, older than the oldest supported, ${oldest}`
  if (pin === 'oldest' && minorOf(server) !== minorOf(oldest))
    return `${serverPath} is ${server} and TEST_KUBERNETES asks for the oldest, ${oldest}`
  return null
}

async function askVersion(path: string): Promise<string> {
  let output = ''
  try {
    output = (await run(path, ['--version'])).stdout
  } catch (error) {
    throw new ProgramsError(`${path} --version fails: replace it, or take it out of KUBEBUILDER_ASSETS or PATH`, {
      cause: error,
    })
  }
  const version = /v(\d+\.\d+\.\d+)/.exec(output)?.[1]
  if (version === undefined)
    throw new ProgramsError(
      `${path} --version names no version: replace it, or take it out of KUBEBUILDER_ASSETS or PATH`,
    )
  return version
}

const minorOf = (version: string) => Number(version.split('.')[1])
