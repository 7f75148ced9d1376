/** Builds the control plane's programs with Go from a pinned go.mod and go.sum: once, then they are in the cache. */

import { createHash } from 'node:crypto'
import { mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { takeLock } from '../lock.ts'
import { askGoVersion, runGo } from './go.ts'
import { type Environment, type Note, PROGRAM_NAMES, type ProgramName, ProgramsError } from './programs.ts'

export interface Build {
  /** The folder of go.mod and go.sum. */
  readonly module: string
  /** Of Kubernetes: `1.36.3`. */
  readonly version: string
  /** Where the programs go. */
  readonly folder: string
  readonly environment: Environment
  readonly note: Note
  /** Why programs that are installed already will not do: for the person who waits. */
  readonly reason: string
}

const PROGRESS_MS = 30_000
const LOOK_MS = 250

/** Brings every program in `folder` up to date with the module, and does nothing when it is. Throws ProgramsError. */
export async function buildPrograms(build: Build): Promise<void> {
  const go = await askGoVersion(build.module, build.environment)
  const source = await hashSource(build)
  if ((await listStale(build, source, go)).length === 0) return
  if (go === null) throw new ProgramsError(explainNoGo(build))
  await mkdir(build.folder, { recursive: true })
  const release = await waitForLock(build)
  try {
    const stale = await listStale(build, source, go) // another process may have built them while we waited
    if (stale.length === 0) return
    build.note(`${build.reason}: building Kubernetes ${build.version} with ${go} into ${build.folder}`)
    build.note('only once; about 6 minutes on two cores, with 100 MB of downloads, when the caches of Go are empty')
    for (const [index, name] of stale.entries())
      await buildProgram(build, name, makeStamp(name, source, go), `${index + 1} of ${stale.length}`)
  } finally {
    await release()
  }
}

/** Resolves with what gives it back, once nobody else builds into the folder. */
async function waitForLock({ folder, note }: Build): Promise<() => Promise<void>> {
  const startedAt = performance.now()
  for (let tellAt = startedAt; ; await sleep(LOOK_MS)) {
    const lock = await takeLock(join(folder, '.lock'))
    if ('release' in lock) return lock.release
    const now = performance.now()
    if (now < tellAt) continue
    note(`process ${lock.holder} builds into ${folder}; waiting for it: ${Math.round((now - startedAt) / 1000)} s`)
    tellAt = now + PROGRESS_MS
  }
}

function explainNoGo({ reason, version, folder, module }: Build): string {
  return (
    `The tests need the programs of a Kubernetes control plane (${PROGRAM_NAMES.join(', ')}). There is ${reason}, ` +
    `none built in ${folder}, and no Go to build them with. Either install Go (https://go.dev/dl; its version is in ` +
    `${join(module, 'go.mod')}) and start again, or set KUBEBUILDER_ASSETS to a folder that holds all four, of ` +
    `Kubernetes ${version}.`
  )
}

async function buildProgram(build: Build, name: ProgramName, stamp: string, place: string): Promise<void> {
  const path = join(build.folder, name)
  const draft = join(build.folder, `.${name}.${process.pid}`)
  const startedAt = performance.now()
  const elapsed = () => `${Math.round((performance.now() - startedAt) / 1000)} s`
  build.note(`building ${name} (${place}) ...`)
  const progress = setInterval(() => build.note(`still building ${name}: ${elapsed()}`), PROGRESS_MS)
  try {
    // Renamed when it is whole: nobody sees half a program, and who runs the old one keeps it.
    await runGo(build.module, build.environment, argumentsFor(build.version, name, draft))
    await rm(stampFile(build.folder, name), { force: true })
    await rename(draft, path)
    await writeFile(stampFile(build.folder, name), stamp)
  } finally {
    clearInterval(progress)
    await rm(draft, { force: true })
  }
  build.note(`built ${name}: ${elapsed()}, ${Math.round((await stat(path)).size / 2 ** 20)} MiB`)
}

/** Kubernetes has its version from the linker; without it, server and clients would call themselves v0.0.0. */
function argumentsFor(version: string, name: ProgramName, output: string): string[] {
  const [major, minor] = version.split('.')
  const facts = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' }
  const set = Object.entries(facts).map(([fact, value]) => `-X k8s.io/component-base/version.${fact}=${value}`)
  const link = name === 'etcd' ? ['-s -w'] : ['-s -w', ...set]
  const source = name === 'etcd' ? 'go.etcd.io/etcd/server/v3' : `k8s.io/kubernetes/cmd/${name}`
  return ['build', '-mod=readonly', '-buildvcs=false', '-trimpath', '-ldflags', link.join(' '), '-o', output, source]
}

const stampFile = (folder: string, name: ProgramName) => join(folder, `.${name}.stamp`)

/** All that a program is made from but the toolchain: pins and flags. */
async function hashSource({ module, version }: Build): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(PROGRAM_NAMES.map((name) => argumentsFor(version, name, ''))))
  for (const file of ['go.mod', 'go.sum']) hash.update(await readFile(join(module, file)))
  return hash.digest('hex')
}

const makeStamp = (name: ProgramName, source: string, go: string) => `${name}\n${source}\n${go}\n`

/** Where Go has gone since, a program of the right source will do. */
async function listStale(build: Build, source: string, go: string | null): Promise<ProgramName[]> {
  const isFresh = async (name: ProgramName) => {
    try {
      await stat(join(build.folder, name))
      return (await readFile(stampFile(build.folder, name), 'utf8')).startsWith(
        makeStamp(name, source, go ?? '').trimEnd(),
      )
    } catch {
      return false // not built yet
    }
  }
  const fresh = await Promise.all(PROGRAM_NAMES.map(isFresh))
  return PROGRAM_NAMES.filter((_, index) => !fresh[index])
}
