/** Debian's apt and dpkg-deb with lists, cache and state of their own: that needs no root, and the system's stay as they are. */

import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Environment, Note } from './programs.ts'

const run = promisify(execFile)
const CALL_MS = 300_000

/** What a command that failed said. */
export class AptError extends Error {
  override readonly name = 'AptError'
}

/** An installed package, as dpkg's status file has it. */
export interface Installed {
  readonly name: string
  readonly stanza: string
}

export interface Apt {
  /** Packages to get, by name, as `download` takes them. */
  plan(wanted: readonly string[], installed: readonly Installed[]): Promise<Map<string, string>>
  /** Resolves with the paths of the archives. */
  download(packages: readonly string[]): Promise<string[]>
}

/** `architecture` default: this system's. Takes the sources of the system's configuration (or APT_CONFIG), with their newest lists. Throws AptError. */
export async function openApt(
  folder: string,
  environment: Environment,
  note: Note,
  architecture?: string,
): Promise<Apt> {
  const settings = {
    'Dir::State': join(folder, 'state'),
    'Dir::State::status': join(folder, 'state', 'status'),
    'Dir::Cache': join(folder, 'cache'),
    'Acquire::Languages': 'none',
    'Acquire::IndexTargets::deb::DEP-11::DefaultEnabled': 'false',
    // Started by root it would become a user who cannot write here.
    'APT::Sandbox::User': 'root',
    ...(architecture === undefined ? {} : { 'APT::Architecture': architecture, 'APT::Architectures': architecture }),
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const archives = join(folder, 'archives')
  const call = (...args: string[]) => callProgram('apt-get', ['-q', ...options, ...args], archives, environment)
  const pretendInstalled = (installed: readonly Installed[]) =>
    writeFile(settings['Dir::State::status'], installed.map(({ stanza }) => `${stanza}\n\n`).join(''))
  for (const path of ['state/lists/partial', 'cache/archives/partial', 'archives'])
    await mkdir(join(folder, path), { recursive: true })
  await pretendInstalled([])
  note('apt-get update ...')
  const { stderr } = await call('update')
  // It goes on without a source that does not answer, which may be the one that has what we want.
  if (stderr !== '') note(stderr)
  return {
    plan: async (wanted, installed) => {
      await pretendInstalled(installed)
      const { stdout } = await call('--simulate', '--no-install-recommends', 'install', ...wanted)
      return readPlan(stdout)
    },
    download: async (packages) => {
      note(`apt-get download (packages: ${packages.length}) ...`)
      await call('download', ...packages)
      const files = (await readdir(archives)).filter((file) => file.endsWith('.deb')).sort()
      return files.map((file) => join(archives, file))
    },
  }
}

/** Of lines like `Inst curl [7.88.1-10+deb12u14] (7.88.1-10+deb12u15 Debian:12.15/oldstable [amd64]) []`. */
function readPlan(output: string): Map<string, string> {
  const lines = output.matchAll(/^Inst (\S+) (?:\[[^\]]*\] )?\((\S+) /gm)
  return new Map(Array.from(lines, ([, name, version]) => [name!, `${name}=${version}`]))
}

/** Reads DPKG_ADMINDIR, as dpkg does; empty where there is no dpkg. */
export async function readInstalled({ DPKG_ADMINDIR = '/var/lib/dpkg' }: Environment): Promise<Installed[]> {
  const text = await readFile(join(DPKG_ADMINDIR, 'status'), 'utf8').catch(() => '')
  return text
    .split(/\n{2,}/)
    .filter((stanza) => /^Status: .* installed$/m.test(stanza))
    .map((stanza) => ({ name: /^Package: (.*)$/m.exec(stanza)![1]!, stanza: stanza.trim() }))
}

/** `dpkg-deb -x` would put folders in the place of the links that makeRoot makes. */
export const UNPACK = 'dpkg-deb --fsys-tarfile "$1" | tar -xp --keep-directory-symlink -C "$2"'

/** An empty root file system on which all packages agree: older ones have files in /lib, newer ones in /usr/lib. */
export async function makeRoot(root: string): Promise<void> {
  for (const name of ['bin', 'sbin', 'lib', 'lib64']) {
    await mkdir(join(root, 'usr', name), { recursive: true })
    await symlink(join('usr', name), join(root, name))
  }
}

/** Its install scripts are not run. Throws AptError. */
export async function unpack(archive: string, root: string, environment: Environment): Promise<void> {
  await callProgram('bash', ['-o', 'pipefail', '-c', UNPACK, 'unpack', archive, root], root, environment)
}

async function callProgram(program: string, args: readonly string[], cwd: string, environment: Environment) {
  try {
    const env = { ...environment, LC_ALL: 'C' }
    const { stdout, stderr } = await run(program, [...args], { cwd, env, timeout: CALL_MS, maxBuffer: 2 ** 26 })
    return { stdout, stderr: stderr.trim() }
  } catch (error) {
    const { code, killed, stdout = '', stderr = '' } = error as Partial<Record<string, string>> & { killed?: boolean }
    if (code === 'ENOENT') throw new AptError(`there is no ${program} on this system`, { cause: error })
    if (killed) throw new AptError(`${program} was not done after ${CALL_MS / 1000} s`, { cause: error })
    const details = /^The following packages have unmet dependencies:\n(?: .*\n)+/m.exec(stdout)?.[0] ?? ''
    throw new AptError(`${program} failed. It said:\n${details}${stderr.trim()}`, { cause: error })
  }
}
