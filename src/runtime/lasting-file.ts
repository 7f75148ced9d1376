/** Files that are made once and hold a secret. */

import { randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from './error-code.ts'

/** Null when there is no such file or folder. */
export async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'ENOTDIR') return null
    throw error
  }
}

/**
 * Makes the file, of mode 0600. It appears whole and on the disk: what else is kept would be lost with its text.
 * Returns what the file holds: `text`, or the text of another process that was faster.
 */
export async function makeOnce(file: string, text: string): Promise<string> {
  const draft = `${file}.${randomBytes(8).toString('hex')}`
  try {
    await using handle = await open(draft, 'wx', 0o600)
    await handle.writeFile(text)
    await handle.sync()
    await link(draft, file).catch((error) => {
      if (errorCode(error) !== 'EEXIST') throw error
    })
  } finally {
    await rm(draft, { force: true })
  }
  await using folder = await open(dirname(file))
  await folder.sync()
  return readFile(file, 'utf8')
}
