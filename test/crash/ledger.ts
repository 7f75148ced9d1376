/**
 * An independent record of what jobs were promised: each job sends its pings one after the other, and notes the response. Afterwards the history is read
 * from the tables and compared: each 200 is there once, with its arrival time, in the job's order.
 */

import { randomUUID } from 'node:crypto'
import { aPing, ask, createAgent, pathOf, type SentPing } from '../support/sent-pings.ts'
import type { Stage } from '../support/stage.ts'

export interface Entry {
  readonly publicId: string
  readonly body: string
  /** By the clock of this machine, which is PostgreSQL's. */
  readonly sentAt: number
  readonly answeredAt: number
  /** Null: no response. */
  readonly status: number | null
  readonly isSpooled: boolean
}

export interface Ledger {
  /** Oldest first. */
  readonly entries: Entry[]
  /** Sends one ping. */
  send(publicId: string, ping?: Partial<SentPing>): Promise<Entry>
  /** Each job sends a ping, waits for its response and for `everyMs`, and so on until `stop`. `ping`: what is different about one. */
  run(publicIds: readonly string[], everyMs: number, ping?: (publicId: string) => Partial<SentPing>): void
  stop(): Promise<void>
  /** What is wrong with the history; empty: nothing. */
  findFaults(stage: Pick<Stage, 'query'>): Promise<string[]>
}

/** `base`: where to send now; null while nothing serves. */
export function openLedger(base: () => string | null): Ledger {
  const entries: Entry[] = []
  const agent = createAgent()
  const jobs: Promise<void>[] = []
  let isStopped = false

  async function send(publicId: string, ping: Partial<SentPing> = {}): Promise<Entry> {
    const body = randomUUID()
    const sent = aPing(publicId, { ...ping, body })
    const sentAt = Date.now()
    const url = base()
    const answer =
      url === null ? null : await ask(url + pathOf(sent), { method: 'POST', body, agent }).catch(() => null)
    const isSpooled = answer?.headers['ping-stored'] === 'spool'
    const entry = { publicId, body, sentAt, answeredAt: Date.now(), status: answer?.status ?? null, isSpooled }
    entries.push(entry)
    return entry
  }

  async function work(publicId: string, everyMs: number, ping: (publicId: string) => Partial<SentPing>) {
    while (!isStopped) {
      if (base() !== null) await send(publicId, ping(publicId))
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  }

  return {
    entries,
    send,
    run(publicIds, everyMs, ping = () => ({})) {
      for (const publicId of publicIds) jobs.push(work(publicId, everyMs, ping))
    },
    async stop() {
      isStopped = true
      await Promise.all(jobs)
      agent.destroy()
    },
    findFaults: (stage) => compare(stage, entries),
  }
}

/** Between two clocks, and for the fractions that a comparison loses. */
const CLOCKS_MS = 250

async function compare(stage: Pick<Stage, 'query'>, entries: readonly Entry[]): Promise<string[]> {
  const rows = (await stage.query(
    `select c.public_id as "publicId", convert_from(b.body, 'UTF8') as body, extract(epoch from p.created_at)::float8 * 1000 as at
      from pings p join checks c on c.key = p.check_key join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
      where b.body is not null order by p.check_key, p.id`,
  )) as { publicId: string; body: string; at: number }[]
  const faults: string[] = []
  const stored = new Map<string, { publicId: string; at: number; place: number }[]>()
  for (const [place, { body, publicId, at }] of rows.entries())
    stored.set(body, [...(stored.get(body) ?? []), { publicId, at, place }])
  const newest = new Map<string, { place: number; at: number }>()
  for (const { publicId, body, status, sentAt, answeredAt } of entries) {
    const found = stored.get(body) ?? []
    if (found.length > 1) faults.push(`${body} is in the history ${found.length} times`)
    if (status !== 200) continue
    const [one] = found
    if (one === undefined) {
      faults.push(`${body} has a 200 and is not in the history`)
      continue
    }
    if (one.publicId !== publicId) faults.push(`${body} is in the history of another check`)
    if (one.at < sentAt - CLOCKS_MS || one.at > answeredAt + CLOCKS_MS)
      faults.push(`${body} was sent at ${sentAt}, answered at ${answeredAt}, and is stored with the time ${one.at}`)
    const before = newest.get(publicId)
    if (before !== undefined && one.place < before.place)
      faults.push(`${body} is stored ${before.at - one.at} ms before an older ping of its check`)
    newest.set(publicId, one)
  }
  return faults
}
