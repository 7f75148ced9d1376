/** One process at a time builds into a folder; the others wait for it. */

import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { identifyProcess } from '../../../src/store/embedded/processes.ts'
import type { Note } from './programs.ts'

const LOOK_MS = 250
const PROGRESS_MS = 30_000

/**
 * Waits until nobody else holds the folder, then holds it until the returned function is called. A holder that died, by
 * kill -9 or with the machine, holds nothing: the lock names its process by pid and start time. (Two waiters who find the
 * same dead holder in the same instant may both go on; what they build is the same, and each puts it in place whole.)
 */
export async function lockFolder(folder: string, note: Note): Promise<() => Promise<void>> {
  const file = join(folder, '.lock')
  const draft = join(folder, `.lock-${randomUUID()}`)
  await writeFile(draft, JSON.stringify({ pid: process.pid, identity: await identifyProcess(process.pid) }))
  const startedAt = performance.now()
  try {
    for (let toldAt = -PROGRESS_MS; !(await takeLock(draft, file)); await sleep(LOOK_MS)) {
      const holder = await findHolder(file)
      const waitedMs = performance.now() - startedAt
      if (holder === null || waitedMs - toldAt < PROGRESS_MS) continue
      note(`process ${holder} builds into ${folder}; waiting for it: ${Math.round(waitedMs / 1000)} s`)
      toldAt = waitedMs
    }
  } finally {
    await rm(draft, { force: true })
  }
  return () => rm(file, { force: true })
}

/** A link appears whole or not at all, so that nobody reads half a lock. */
async function takeLock(draft: string, file: string): Promise<boolean> {
  try {
    await link(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** The pid of the live holder. Null when there is none, and then the lock can be taken: a dead one's is removed. */
async function findHolder(file: string): Promise<number | null> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch {
    return null // given back a moment ago
  }
  const { pid, identity } = JSON.parse(text) as { pid: number; identity: string }
  if ((await identifyProcess(pid)) === identity) return pid
  await rm(file, { force: true })
  return null
}
