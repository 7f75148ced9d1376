/** The secret key, when SECRET_KEY is not set: made once and kept in the data folder, readable by its owner only. */

import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { SECRET_KEY_BYTES } from '../domain/limits.ts'
import { ConfigError } from './config.ts'

/** Throws ConfigError when the file cannot be written, or holds something else. */
export async function loadOrMakeSecretKey(dataDir: string): Promise<Buffer> {
  const file = join(dataDir, 'secret-key')
  const text = (await readIfThere(file)) ?? (await makeFile(dataDir, file))
  const key = Buffer.from(text, 'base64')
  if (key.length === SECRET_KEY_BYTES) return key
  const fault = `${file} does not hold a key of ${SECRET_KEY_BYTES} bytes: restore it, or remove it (then all users must log in again, and sealed channel settings are lost)`
  throw new ConfigError([fault])
}

/**
 * The file appears whole and on the disk: what the database holds under the key would be lost with it. Of two first
 * starts at the same time both return the key of the faster one.
 */
async function makeFile(dataDir: string, file: string): Promise<string> {
  const draft = `${file}.${randomBytes(8).toString('hex')}`
  try {
    await mkdir(dataDir, { recursive: true })
    try {
      await using handle = await open(draft, 'wx', 0o600)
      await handle.writeFile(randomBytes(SECRET_KEY_BYTES).toString('base64'))
      await handle.sync()
      await link(draft, file).catch(ignoreExisting)
    } finally {
      await rm(draft, { force: true })
    }
    await using folder = await open(dataDir)
    await folder.sync()
  } catch (error) {
    throw new ConfigError([`DATA_DIR cannot be written to: ${(error as Error).message}`])
  }
  return readFile(file, 'utf8')
}

function ignoreExisting(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EEXIST') throw error
}

/** Null when there is no such file or folder. */
async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return null
    throw new ConfigError([`DATA_DIR cannot be read: ${message}`])
  }
}
