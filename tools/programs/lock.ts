/** A lock file for processes of this machine. */

import { randomUUID } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { identifyProcess } from './process-identity.ts'

export type Lock = { readonly release: () => Promise<void> } | { readonly holder: number }

/**
 * Takes the lock, or returns the pid of the live process that holds it. A holder that died, by kill -9 or with the machine,
 * holds nothing: the file names its process by pid and start time. (Two that find the same dead holder in the same instant
 * may both get it; what is locked with it here does no harm when done twice.)
 */
export async function takeLock(file: string): Promise<Lock> {
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, JSON.stringify({ pid: process.pid, identity: await identifyProcess(process.pid) }))
  try {
    for (;;) {
      if (await linkUnlessThere(draft, file)) return { release: () => rm(file, { force: true }) }
      const holder = await findHolder(file)
      if (holder !== null) return { holder }
    }
  } finally {
    await rm(draft, { force: true })
  }
}

const LOOK_MS = 250
const REPORT_MS = 30_000

/**
 * Resolves with the function that releases the lock, once this process holds it. Until then `report` gets the holder's pid and
 * the seconds waited, at once and then every half minute.
 */
export async function waitForLock(
  file: string,
  report: (holder: number, waited: number) => void,
): Promise<() => Promise<void>> {
  const startedAt = performance.now()
  for (let reportAt = startedAt; ; await sleep(LOOK_MS)) {
    const lock = await takeLock(file)
    if ('release' in lock) return lock.release
    const now = performance.now()
    if (now < reportAt) continue
    report(lock.holder, Math.round((now - startedAt) / 1000))
    reportAt = now + REPORT_MS
  }
}

/** A link appears whole or not at all, so that no process reads half a lock. */
async function linkUnlessThere(draft: string, file: string): Promise<boolean> {
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
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null // given back a moment ago
    throw error
  }
  const { pid, identity } = JSON.parse(text) as { pid: number; identity: string }
  if ((await identifyProcess(pid)) === identity) return pid
  await rm(file, { force: true })
  return null
}
