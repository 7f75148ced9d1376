/** Where the real Prometheus of the tests comes from: found on this machine, or fetched once from Debian. */

import { dirname, join } from 'node:path'
import { fetchDebianPackages } from './debian-packages.ts'
import { findIn, isProgram, listPath } from './places.ts'
import type { Environment, Note } from './programs.ts'

/** Paths of the programs; both are of one version. */
export interface PrometheusPrograms {
  readonly prometheus: string
  readonly promtool: string
}

/** What kept the programs from being had; the message says what to install or set. */
export class PrometheusMissing extends Error {
  override readonly name = 'PrometheusMissing'
}

const NEWER = 'a Prometheus, 2.42 or later (https://prometheus.io/download), with promtool beside it'

/**
 * PROMETHEUS_BIN, else the one in PATH, else the one of Debian's package, unpacked into the user's cache folder and installed
 * nowhere. promtool is the one beside it. A first download is reported through `note` (default: stderr). Throws PrometheusMissing or
 * DebianPackagesMissing.
 */
export async function findPrometheus(
  options: { environment?: Environment; note?: Note } = {},
): Promise<PrometheusPrograms> {
  const { environment = process.env } = options
  const { PROMETHEUS_BIN: given = '' } = environment
  if (given !== '') {
    if (!(await isProgram(given)))
      throw new PrometheusMissing(`PROMETHEUS_BIN is ${given}, which is no program: correct it, or leave it out`)
    return withPromtool(given)
  }
  const found = await findIn(listPath(environment), 'prometheus')
  if (found !== null) return withPromtool(found)
  const folder = await fetchDebianPackages({
    name: 'prometheus',
    packages: ['prometheus'],
    scope: 'missing',
    otherwise: `Set PROMETHEUS_BIN to the path of ${NEWER}, or install one in PATH.`,
    ...options,
  })
  return withPromtool(join(folder, 'usr', 'bin', 'prometheus'))
}

async function withPromtool(prometheus: string): Promise<PrometheusPrograms> {
  const promtool = join(dirname(prometheus), 'promtool')
  if (await isProgram(promtool)) return { prometheus, promtool }
  throw new PrometheusMissing(`there is no promtool beside ${prometheus}: set PROMETHEUS_BIN to the path of ${NEWER}`)
}
