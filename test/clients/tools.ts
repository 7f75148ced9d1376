/**
 * The tools of this lane, of the versions in the lock files beside this file: generators and linters from npm, clients from PyPI and
 * crates.io, each installed once into the user's cache folder; Go builds its tool itself.
 */

import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { waitForLock } from '../../tools/programs/lock.ts'
import { cacheFolder } from '../../tools/programs/places.ts'

export const HERE = fileURLToPath(new URL('.', import.meta.url))
const CALL_MS = 600_000
const MAX_OUTPUT = 64 * 2 ** 20
/** Node of this process first: the one in PATH may be too old for the generators. */
const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter)
/** They report to their makers otherwise. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', SCARF_ANALYTICS: 'false', CI: 'true' }

interface CallOptions {
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** Resolves with what the program wrote to stdout. Throws with all that it wrote when it fails, and with `need` when it is missing. */
export function call(
  program: string,
  args: readonly string[],
  { cwd, env = {} }: CallOptions,
  need = '',
): Promise<string> {
  const options = { cwd, env: { ...process.env, PATH, ...QUIET, ...env }, timeout: CALL_MS, maxBuffer: MAX_OUTPUT }
  return new Promise((resolve, reject) => {
    execFile(program, [...args], options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout)
      if (error.code === 'ENOENT') return reject(new Error(`the tests need ${program}, which is not in PATH. ${need}`))
      reject(new Error(`${program} ${args.join(' ')} failed in ${cwd}:\n${stdout}\n${stderr}`))
    })
  })
}

/** A folder with `node_modules`, as `npm ci` makes it. */
export function installFromNpm(): Promise<string> {
  return installOnce('npm', ['package.json', 'package-lock.json'], async (folder) => {
    await call('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder })
  })
}

const NEED_PYTHON = 'Install Python 3.10 or later with its module venv (Debian: python3-venv), and start again.'

/** The Python of a virtual environment that has the packages of requirements.txt. */
export async function installFromPyPi(): Promise<string> {
  const folder = await installOnce('pypi', ['requirements.txt'], async (folder) => {
    await call('python3', ['-m', 'venv', 'venv'], { cwd: folder }, NEED_PYTHON)
    const install = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--require-hashes',
      '--only-binary=:all:',
      '-r',
      'requirements.txt',
    ]
    await call(join(folder, 'venv/bin/python'), install, { cwd: folder })
  })
  return join(folder, 'venv/bin/python')
}

/** The program of rust/, with the crates of its lock file. Null where there is no cargo: nothing else here needs Rust. */
export async function buildWithCargo(): Promise<string | null> {
  const hasCargo = await call('cargo', ['--version'], { cwd: HERE }).then(
    () => true,
    () => false,
  )
  if (!hasCargo) return null
  const folder = await installOnce('cargo', ['Cargo.toml', 'Cargo.lock', 'src/main.rs'].map(inRust), async (folder) => {
    const cwd = join(folder, 'rust')
    await call('cargo', ['build', '--locked', '--quiet'], { cwd, env: { CARGO_PROFILE_DEV_DEBUG: '0' } })
    await copyFile(join(cwd, 'target/debug/manage'), join(folder, 'manage'))
    await rm(join(cwd, 'target'), { recursive: true })
  })
  return join(folder, 'manage')
}

const inRust = (file: string) => join('rust', file)

/** A new folder for what a test generates, inside of `parent`: so that it finds the packages of `parent`. */
export async function makeRunFolder(parent: string): Promise<AsyncDisposable & { readonly path: string }> {
  const path = await mkdtemp(join(parent, 'run-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

/** Where everything is installed that the files ask for, by their hash: a change of a lock file makes a new folder. */
async function installOnce(name: string, files: readonly string[], install: (folder: string) => Promise<void>) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(await readFile(join(HERE, file)))
  const folder = join(cacheFolder(process.env), `clients-${name}-${hash.digest('hex').slice(0, 16)}`)
  const done = join(folder, '.installed')
  if (existsSync(done)) return folder
  await mkdir(folder, { recursive: true })
  const note = (line: string) => process.stderr.write(`${line}\n`)
  const release = await waitForLock(join(folder, '.lock'), (holder, waited) =>
    note(`process ${holder} installs into ${folder}; waiting for it: ${waited} s`),
  )
  try {
    if (existsSync(done)) return folder
    note(`installing ${files[0]} of test/clients into ${folder}, only once`)
    for (const file of files) {
      await mkdir(dirname(join(folder, file)), { recursive: true })
      await copyFile(join(HERE, file), join(folder, file))
    }
    await install(folder)
    await writeFile(done, '')
    return folder
  } finally {
    await release()
  }
}
