/** Where the real Alertmanager of the tests comes from: found on this machine, or fetched once from Debian. */

import { copyFile, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fetchDebianPackages } from './debian-packages.ts'
import { findIn, isProgram, listPath } from './places.ts'
import type { Environment, Note } from './programs.ts'

/** ALERTMANAGER_BIN names no program; the message says what to do. */
export class AlertmanagerMissing extends Error {
  override readonly name = 'AlertmanagerMissing'
}

const NAMES = ['prometheus-alertmanager', 'alertmanager']
const PACKAGE = 'prometheus-alertmanager'
/** Where the package has it. */
const INSIDE = join('usr', 'bin', PACKAGE)

/**
 * The path of an Alertmanager: ALERTMANAGER_BIN, else one in PATH, else the one of Debian's package, unpacked into the user's cache
 * folder (XDG_CACHE_HOME) and installed nowhere. Its first download is reported through `note` (default: stderr). Throws
 * AlertmanagerMissing or DebianPackagesMissing.
 */
export async function findAlertmanager(options: { environment?: Environment; note?: Note } = {}): Promise<string> {
  const { environment = process.env } = options
  const { ALERTMANAGER_BIN: given = '' } = environment
  if (given !== '') {
    if (await isProgram(given)) return given
    throw new AlertmanagerMissing(`ALERTMANAGER_BIN is ${given}, which is no program: correct it, or leave it out`)
  }
  for (const name of NAMES) {
    const path = await findIn(listPath(environment), name)
    if (path !== null) return path
  }
  const folder = await fetchDebianPackages({
    ...options,
    name: 'alertmanager',
    packages: [PACKAGE],
    scope: 'missing',
    prepare: (unpacked) => relocate(join(unpacked, INSIDE)),
    otherwise: WAYS_OUT,
  })
  return join(folder, INSIDE)
}

const WAYS_OUT =
  'Set ALERTMANAGER_BIN to the path of an Alertmanager, 0.25 or later (https://prometheus.io/download), or install one in PATH.'

/**
 * Debian's looks for its templates, without which it does not start, in a folder of the system, where nothing is to be installed.
 * From now on it looks in its working folder: the same length, and no other byte is touched.
 */
async function relocate(program: string): Promise<void> {
  const bytes = await readFile(program)
  const there = Buffer.from(SYSTEM_TEMPLATES)
  const here = Buffer.from('.'.padEnd(there.length, '/'))
  for (let at = bytes.indexOf(there); at >= 0; at = bytes.indexOf(there, at)) here.copy(bytes, at)
  await writeFile(program, bytes)
}

const SYSTEM_TEMPLATES = '/usr/share/prometheus/alertmanager'

/** What a relocated one looks for in its working folder. */
export async function copyTemplates(program: string, folder: string): Promise<void> {
  const templates = join(dirname(program), '..', 'share', 'prometheus', 'alertmanager')
  for (const name of await readdir(templates).catch(() => []))
    if (name.endsWith('.tmpl')) await copyFile(join(templates, name), join(folder, name))
}
