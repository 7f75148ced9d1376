/** npm for the image in which ours is built, and its settings on this machine. */

import { execFile } from 'node:child_process'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export const NPM_VERSION = '11.19.1'
/** Where the image has the certificates that this machine's npm trusts. */
export const CERTIFICATES = '/etc/ssl/certs/npm.crt'

/** Unpacks npm into `folder`, from the registry that this machine's npm is set to. */
export async function fetchNpm(folder: string): Promise<void> {
  const { stdout } = await run('npm', ['pack', '--silent', `npm@${NPM_VERSION}`, `--pack-destination=${folder}`])
  const archive = join(folder, stdout.trim().split('\n').at(-1)!)
  await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=1', 'package'])
  await rm(archive)
}

/** The file of the certificates that this machine's npm trusts; null: those that Node.js has. */
export async function findCertificates(): Promise<string | null> {
  return await askNpm('cafile')
}

/**
 * An npmrc by which npm reaches its registry from the image as it does from here: registries, credentials, proxies. It may
 * hold secrets.
 */
export async function describeNpmSettings(): Promise<string> {
  const files = [await askNpm('globalconfig'), await askNpm('userconfig')]
  const texts = await Promise.all(files.map((file) => (file === null ? '' : readFile(file, 'utf8').catch(() => ''))))
  const lines = texts.join('\n').split('\n')
  const wanted = lines.filter((line) => line.trim() !== '' && !OF_THIS_MACHINE.test(line))
  if ((await findCertificates()) !== null) wanted.push(`cafile=${CERTIFICATES}`)
  for (const key of FROM_ENVIRONMENT) {
    const value = await askNpm(key)
    if (value !== null) wanted.push(`${key}=${value}`)
  }
  return `${wanted.join('\n')}\n`
}

/** Paths that lead nowhere in an image. */
const OF_THIS_MACHINE = /^\s*(cafile|prefix|cache|userconfig|globalconfig|nodedir)\s*=/
/** What no file need say. */
const FROM_ENVIRONMENT = ['registry', 'proxy', 'https-proxy']

async function askNpm(key: string): Promise<string | null> {
  const value = (await run('npm', ['config', 'get', key])).stdout.trim()
  return value === '' || value === 'null' || value === 'undefined' ? null : value
}
