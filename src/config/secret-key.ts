/** The secret key, when SECRET_KEY is not set: made once and kept in the data folder, readable by its owner only. */

import { randomBytes } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { SECRET_KEY_BYTES } from '../domain/limits.ts'
import { makeOnce, readIfThere } from '../runtime/lasting-file.ts'
import { ConfigError } from './config.ts'

/** Throws ConfigError when the file cannot be written, or holds something else. */
export async function loadOrMakeSecretKey(dataDir: string): Promise<Buffer> {
  const file = join(dataDir, 'secret-key')
  const explain = (what: string) => (error: Error) => {
    throw new ConfigError([`DATA_DIR cannot be ${what}: ${error.message}`])
  }
  const text =
    (await readIfThere(file).catch(explain('read'))) ?? (await makeKey(dataDir, file).catch(explain('written to')))
  const key = Buffer.from(text, 'base64')
  if (key.length === SECRET_KEY_BYTES) return key
  const fault = `${file} does not hold a key of ${SECRET_KEY_BYTES} bytes: restore it, or remove it (then all users must log in again, and sealed channel settings are lost)`
  throw new ConfigError([fault])
}

async function makeKey(dataDir: string, file: string): Promise<string> {
  await mkdir(dataDir, { recursive: true })
  return makeOnce(file, randomBytes(SECRET_KEY_BYTES).toString('base64'))
}
