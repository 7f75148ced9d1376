/**
 * Finds the control plane's programs: those of KUBEBUILDER_ASSETS or PATH when the whole set is there, else our own, built
 * once and kept in the user's cache folder.
 */

import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { buildPrograms } from './build.ts'
import {
  type Environment,
  moduleFolder,
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
 * takes minutes and is told line by line through `note` (default: stderr). Throws ProgramsError.
 */
export async function findPrograms(options: { environment?: Environment; note?: Note } = {}): Promise<Programs> {
  const { environment = process.env, note = (line) => process.stderr.write(`${line}\n`) } = options
  const pin = readPin(environment.TEST_KUBERNETES)
  const found = await searchPrograms(environment)
  const refusal = found.missing ?? (await refuseVersions(found.paths, pin))
  if (refusal === null) {
    const paths = found.paths as Programs['paths']
    return { paths, version: await askVersion(paths['kube-apiserver']) }
  }
  const version = await readPinnedVersion(pin)
  const folder = join(cacheFolder(environment), 'heartbeat-operator', `kubernetes-${version}`, 'bin')
  await buildPrograms({ module: moduleFolder(pin), version, folder, environment, note, reason: refusal })
  const paths = Object.fromEntries(PROGRAM_NAMES.map((name) => [name, join(folder, name)])) as Programs['paths']
  return { paths, version }
}

function readPin(text = ''): Pin {
  if (text === '' || text === 'newest') return 'newest'
  if (text === 'oldest') return text
  throw new ProgramsError(`TEST_KUBERNETES is ${JSON.stringify(text)}: set it to newest (the default) or to oldest`)
}

function cacheFolder({ XDG_CACHE_HOME, HOME }: Environment): string {
  // The XDG base directory specification: a relative path is to be ignored.
  if (XDG_CACHE_HOME !== undefined && isAbsolute(XDG_CACHE_HOME)) return XDG_CACHE_HOME
  return join(HOME ?? homedir(), '.cache')
}

interface Found {
  readonly paths: Partial<Record<ProgramName, string>>
  /** Says which programs are in neither place; null when all were found. */
  readonly missing: string | null
}

/** KUBEBUILDER_ASSETS goes before PATH, program by program: envtest's assets hold no kube-controller-manager. */
async function searchPrograms({ KUBEBUILDER_ASSETS: assets = '', PATH = '' }: Environment): Promise<Found> {
  const folders = [assets, ...PATH.split(delimiter)].filter(isAbsolute)
  const paths: Found['paths'] = {}
  for (const name of PROGRAM_NAMES)
    for (const folder of folders) {
      if (!(await isProgram(join(folder, name)))) continue
      paths[name] = join(folder, name)
      break
    }
  const absent = PROGRAM_NAMES.filter((name) => paths[name] === undefined).join(', ')
  if (absent === '') return { paths, missing: null }
  const place = assets === '' ? 'PATH (KUBEBUILDER_ASSETS is not set)' : `KUBEBUILDER_ASSETS (${assets}) and PATH`
  return { paths, missing: `no ${absent} in ${place}` }
}

async function isProgram(path: string): Promise<boolean> {
  try {
    await access(path, constants.X_OK)
    return true
  } catch {
    return false
  }
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
