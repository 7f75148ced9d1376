/** Builds programs with Go from a pinned go.mod and go.sum: once, then they are in the cache. */

import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { askGoVersion, runGo } from './go.ts'
import { waitForLock } from './lock.ts'
import { type Environment, type Note, ProgramsError } from './programs.ts'

/** A program of a Go module. */
export interface GoProgram {
  readonly name: string
  /** The Go package: `k8s.io/kubernetes/cmd/kubectl`, or `.` for the module's own. */
  readonly source: string
  /** Go variables that the linker sets, by their full names. */
  readonly variables?: Readonly<Record<string, string>>
}

export interface Build {
  /** The folder of go.mod and go.sum. */
  readonly module: string
  /** What they are together, for people: `Kubernetes 1.36.3`. */
  readonly title: string
  readonly programs: readonly GoProgram[]
  /** Where the programs go. */
  readonly folder: string
  readonly environment: Environment
  readonly note: Note
  /** Why programs that are installed already will not do: for the person who waits. */
  readonly reason: string
  /** What the tests need, for the person who has no Go. */
  readonly need: string
  /** Time and downloads of a build from nothing. */
  readonly cost: string
  /** What a person can do who will not install Go. */
  readonly otherwise: string
}

const PROGRESS_MS = 30_000

/** Brings every program in `folder` up to date with the module, and does nothing when it is. Throws ProgramsError. */
export async function buildPrograms(build: Build): Promise<void> {
  const go = await askGoVersion(build.module, build.environment)
  const source = await hashSource(build)
  if ((await listStale(build, source, go)).length === 0) return
  if (go === null) throw new ProgramsError(explainNoGo(build))
  await mkdir(build.folder, { recursive: true })
  const { folder, note } = build
  const release = await waitForLock(join(folder, '.lock'), (holder, waited) =>
    note(`process ${holder} builds into ${folder}; waiting for it: ${waited} s`),
  )
  try {
    const stale = await listStale(build, source, go) // another process may have built them while we waited
    if (stale.length === 0) return
    build.note(`${build.reason}: building ${build.title} with ${go} into ${build.folder}`)
    build.note(`only once; ${build.cost}, when the caches of Go are empty`)
    for (const [index, program] of stale.entries())
      await buildProgram(build, program, makeStamp(program.name, source, go), `${index + 1} of ${stale.length}`)
  } finally {
    await release()
  }
}

function explainNoGo({ need, reason, folder, module, otherwise }: Build): string {
  return (
    `The tests need ${need}: ${reason}, none built in ${folder}, and no Go to build with. Either install Go ` +
    `(https://go.dev/dl; its version is in ${join(module, 'go.mod')}) and start again, or ${otherwise}.`
  )
}

async function buildProgram(build: Build, program: GoProgram, stamp: string, place: string): Promise<void> {
  const { name } = program
  const path = join(build.folder, name)
  const draft = join(build.folder, `.${name}.${process.pid}`)
  const startedAt = performance.now()
  const elapsed = () => `${Math.round((performance.now() - startedAt) / 1000)} s`
  build.note(`building ${name} (${place}) ...`)
  const progress = setInterval(() => build.note(`still building ${name}: ${elapsed()}`), PROGRESS_MS)
  try {
    // Renamed when it is complete: no process sees half a program, and a running old one goes on.
    await runGo(build.module, build.environment, argumentsFor(program, draft))
    await rm(stampFile(build.folder, name), { force: true })
    await rename(draft, path)
    await writeFile(stampFile(build.folder, name), stamp)
  } finally {
    clearInterval(progress)
    await rm(draft, { force: true })
  }
  build.note(`built ${name}: ${elapsed()}, ${Math.round((await stat(path)).size / 2 ** 20)} MiB`)
}

function argumentsFor({ source, variables = {} }: GoProgram, output: string): string[] {
  const link = ['-s -w', ...Object.entries(variables).map(([variable, value]) => `-X ${variable}=${value}`)]
  return ['build', '-mod=readonly', '-buildvcs=false', '-trimpath', '-ldflags', link.join(' '), '-o', output, source]
}

const stampFile = (folder: string, name: string) => join(folder, `.${name}.stamp`)

/** All that the programs are made from but the toolchain: pins, sources of our own and flags. */
async function hashSource({ module, programs }: Build): Promise<string> {
  const files = (await readdir(module)).filter((name) => /^go\.(mod|sum)$|\.go$/.test(name)).sort()
  const hash = createHash('sha256').update(JSON.stringify(programs.map((program) => argumentsFor(program, ''))))
  for (const file of files) hash.update(await readFile(join(module, file)))
  return hash.digest('hex')
}

const makeStamp = (name: string, source: string, go: string) => `${name}\n${source}\n${go}\n`

/** Where Go has gone since, a program of the right source will do. */
async function listStale({ folder, programs }: Build, source: string, go: string | null): Promise<GoProgram[]> {
  const isFresh = async ({ name }: GoProgram) => {
    try {
      await stat(join(folder, name))
      const stamp = await readFile(stampFile(folder, name), 'utf8')
      return stamp.startsWith(makeStamp(name, source, go ?? '').trimEnd())
    } catch {
      return false // not built yet
    }
  }
  const fresh = await Promise.all(programs.map(isFresh))
  return programs.filter((_, index) => !fresh[index])
}
