/** The secret key, when SECRET_KEY is not set: made once and kept in the data folder, readable by its owner only. */

import { randomBytes } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigError } from './config.ts'
import { SECRET_KEY_BYTES } from './domain/limits.ts'

/** Throws ConfigError when the file cannot be written, or holds something else. */
export async function loadOrMakeSecretKey(dataDir: string): Promise<Buffer> {
  const file = join(dataDir, 'secret-key')
  try {
    await mkdir(dataDir, { recursive: true })
    await writeFile(file, randomBytes(SECRET_KEY_BYTES).toString('base64'), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code !== 'EEXIST') throw new ConfigError([`DATA_DIR cannot be written to: ${message}`])
  }
  const key = Buffer.from(await readFile(file, 'utf8'), 'base64')
  if (key.length === SECRET_KEY_BYTES) return key
  const fault = `${file} does not hold a key of ${SECRET_KEY_BYTES} bytes: restore it, or remove it (then all users must log in again, and sealed channel settings are lost)`
  throw new ConfigError([fault])
}
