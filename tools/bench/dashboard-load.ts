/** What open pages and viewers of the dashboard cost a service, and its pings. */

import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, type IncomingMessage, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { CHECKOUT } from '../../test/support/service-process.ts'
import type { PacedLoad, PacedResult } from './paced-load.ts'

const run = promisify(execFile)

export interface Site {
  /** Of the pages, without a slash at the end. */
  readonly origin: string
  readonly pingUrl: string
  readonly pid: number
  /** One session for each; a session may have 20 streams. */
  readonly cookies: readonly string[]
  readonly publicIds: readonly string[]
}

/** Resident memory of a process in MB. */
export function memoryOf(pid: number): number {
  const [, kb] = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kb) / 1_024
}

/** Opens as many streams, and counts the events that arrive. */
export async function openStreams({ origin, cookies }: Site, count: number) {
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })
  let events = 0
  const opened: IncomingMessage[] = []
  const open = (cookie: string) =>
    new Promise<void>((resolve, reject) => {
      request(`${origin}/live`, { agent, headers: { cookie } }, (response) => {
        if (response.statusCode !== 200) return reject(new Error(`/live gives ${response.statusCode}`))
        opened.push(response)
        response.on('error', () => {})
        response.on('data', (chunk: Buffer) => {
          events += chunk.toString().split('event: change').length - 1
          resolve()
        })
      })
        .on('error', reject)
        .on('socket', (socket) => socket.on('error', () => {}))
        .end()
    })
  for (let index = 0; index < count; index += 20)
    await Promise.all(Array.from({ length: Math.min(20, count - index) }, () => open(cookies[index / 20]!)))
  return {
    events: () => events,
    close() {
      for (const response of opened) response.destroy()
      agent.destroy()
    },
  }
}

/** One request as a browser sends it. */
export function getPage(url: string, cookie: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers: { cookie, 'accept-encoding': 'br', ...headers } }, (response) => {
      response
        .resume()
        .on('end', () => resolve(response.statusCode!))
        .on('error', reject)
    })
      .on('error', reject)
      .end()
  })
}

/** Users who look at one page after the other, with a second to read each. Returns how many pages they saw when `signal` aborts. */
export async function viewPages(
  { origin, cookies }: Site,
  users: number,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  let pages = 0
  const view = async (user: number) => {
    // Not all at the same moment.
    await sleep(Math.random() * 1_000)
    for (let count = user; !signal.aborted; count += 1) {
      const status = await getPage(origin + paths[count % paths.length]!, cookies[user]!)
      if (status !== 200) throw new Error(`a page gives ${status}`)
      pages += 1
      await sleep(1_000, undefined, { signal }).catch(() => {})
    }
  }
  await Promise.all(Array.from({ length: users }, (_, user) => view(user)))
  return pages
}

/** Open lists that are read again, each every 25 seconds, as the script does. Returns how many reads there were. */
export async function pollPages({ origin, cookies }: Site, pages: number, signal: AbortSignal): Promise<number> {
  let reads = 0
  const poll = async (page: number) => {
    await sleep(Math.random() * 25_000, undefined, { signal }).catch(() => {})
    while (!signal.aborted) {
      const headers = { 'x-refresh': new Date(Date.now() - 25_000).toISOString() }
      await getPage(`${origin}/checks`, cookies[page % cookies.length]!, headers)
      reads += 1
      await sleep(25_000, undefined, { signal }).catch(() => {})
    }
  }
  await Promise.all(Array.from({ length: pages }, (_, page) => poll(page)))
  return reads
}

/** Pings of a process of its own, at a steady pace. */
export async function pingSteadily(
  { pingUrl, publicIds }: Site,
  load: Pick<PacedLoad, 'perSecond' | 'seconds'>,
): Promise<PacedResult> {
  const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
  try {
    const ids = join(folder, 'ids')
    writeFileSync(ids, publicIds.join('\n'))
    const given: PacedLoad = { url: pingUrl, ids, ...load }
    const args = [`${CHECKOUT}tools/bench/paced-load.ts`, JSON.stringify(given)]
    const { stdout } = await run(process.execPath, args, { maxBuffer: 1e9 })
    return JSON.parse(stdout) as PacedResult
  } finally {
    rmSync(folder, { recursive: true })
  }
}
