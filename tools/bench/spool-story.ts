/**
 * `npm run bench:spool -- --story`: two minutes without a database under 200 pings a second, one in a hundred of them a `/fail`. Each job hears 200; each
 * of these pings is in the history; each failure is notified once, soon after the database is back; no check is down that should not be.
 */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openLedger } from '../../test/crash/ledger.ts'
import { createApiClient } from '../../test/support/api-client.ts'
import { query } from '../../test/support/embedded.ts'
import { startPostgresServer } from '../../test/support/postgres-server.ts'
import { startReceiver } from '../../test/support/receiver.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, startService } from '../../test/support/service-process.ts'
import { eventually } from '../../test/support/until.ts'

const PER_SECOND = 200
const CHECKS = 2_000
const BEFORE_SECONDS = 70
const OUTAGE_SECONDS = Number(process.env.BENCH_OUTAGE_SECONDS ?? 120)
const AFTER_SECONDS = 30
const NOTIFIED_WITHIN_MS = 10_000
/** Each is pinged every ten seconds. */
const DOWN_AFTER_SECONDS = 30

/** Returns whether all of it is held. */
export async function tellStory(): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'heartbeat-bench-'))
  const postgres = await startPostgresServer()
  const receiver = await startReceiver()
  const service = await startService({
    ...databaseEnvironment(postgres.url),
    SPOOL_DIR: join(folder, 'spool'),
    SPOOL_MAX_BYTES: String(2 ** 26),
    ALLOWED_TARGETS: '127.0.0.0/8',
    LOG_LEVEL: 'warn',
  })
  try {
    const client = await createApiClient(service.api, API_KEY)
    await client.post('/channels', { kind: 'webhook', name: 'receiver', config: { url: receiver.url } })
    const arrivals: { readonly body: string; readonly at: number }[] = []
    receiver.answer(({ body }) => {
      arrivals.push({ body, at: Date.now() })
      return { status: 204 }
    })
    const checks = await seed(postgres.url)
    const ledger = openLedger(() => service.ping)
    const failures: { readonly id: string; readonly at: number }[] = []
    let isOver = false
    const sending = send()
    process.stdout.write(`${BEFORE_SECONDS} s with the database ...\n`)
    await sleep(BEFORE_SECONDS * 1_000)
    const begunAt = Date.now()
    await postgres.kill()
    process.stdout.write(`${OUTAGE_SECONDS} s without ...\n`)
    await sleep(OUTAGE_SECONDS * 1_000)
    await postgres.start()
    const endedAt = Date.now()
    process.stdout.write(`${AFTER_SECONDS} s with it again ...\n\n`)
    await sleep(AFTER_SECONDS * 1_000)
    isOver = true
    await sending
    await ledger.stop()
    await eventually(
      'no delivery waits',
      async () => (await query(postgres.url, `select from deliveries where status = 0`)).length === 0,
    )

    const during = ledger.entries.filter(({ sentAt }) => sentAt >= begunAt && sentAt < endedAt)
    const notified = new Map<string, number[]>()
    const other = new Set<string>()
    for (const { body, at } of arrivals) {
      const { type, data } = JSON.parse(body) as { type: string; data: { check: { id: string } } }
      if (type !== 'check.down') continue
      const { id } = data.check
      notified.set(id, [...(notified.get(id) ?? []), at])
      if (!failures.some((failure) => failure.id === id)) other.add(id)
    }
    const failed = failures.filter(({ at }) => at >= begunAt && at < endedAt)
    const times = failed.map(({ id }) => Math.max(...(notified.get(id) ?? [Number.POSITIVE_INFINITY])) - endedAt)
    const faults = await ledger.findFaults({ query: (sql) => query(postgres.url, sql) })
    const slowest = Math.max(...during.map(({ sentAt, answeredAt }) => answeredAt - sentAt))
    const rows: [string, number, number, boolean?][] = [
      ['pings without a database', during.length, 0, true],
      ['of them on disk', during.filter(({ isSpooled }) => isSpooled).length, 0, true],
      ['pings without a 200, in all', ledger.entries.filter(({ status }) => status !== 200).length, 0],
      ['the slowest response, ms', slowest, 3_000],
      ['faults of the history', faults.length, 0],
      ['failures without a database', failed.length, 0, true],
      ['failures that were not notified once', failures.filter(({ id }) => notified.get(id)?.length !== 1).length, 0],
      ['the last of them notified after, ms', Math.max(...times), NOTIFIED_WITHIN_MS],
      ['other checks that were notified as down', other.size, 0],
    ]
    process.stdout.write('| what | measured | limit | |\n|---|---:|---:|---|\n')
    let isHeld = true
    for (const [what, measured, limit, isFigure = false] of rows) {
      isHeld &&= isFigure || measured <= limit
      const verdict = isFigure ? ' | ' : `${limit} | ${measured <= limit ? 'held' : 'MISSED'}`
      process.stdout.write(`| ${what} | ${Math.round(measured)} | ${verdict} |\n`)
    }
    for (const fault of faults.slice(0, 10)) process.stdout.write(`${fault}\n`)
    if (!isHeld) process.stdout.write(service.stderr.slice(-5_000))
    return isHeld

    /** Each check in turn. One in a hundred fails, each at most once. */
    async function send(): Promise<void> {
      const startedAt = performance.now()
      const pending = new Set<Promise<unknown>>()
      for (let sent = 0; !isOver; ) {
        const waitMs = startedAt + (sent * 1_000) / PER_SECOND - performance.now()
        if (waitMs > 1) {
          await sleep(waitMs)
          continue
        }
        const { id, publicId } = checks[sent % CHECKS]!
        // A step that is no part of the number of checks: each time another one.
        const isFail = sent % 101 === 100 && !failures.some((failure) => failure.id === id)
        if (isFail) failures.push({ id, at: Date.now() })
        const ping = ledger.send(publicId, isFail ? { type: 'fail', exitCode: null } : {})
        pending.add(ping)
        void ping.finally(() => pending.delete(ping))
        sent += 1
      }
      await Promise.all(pending)
    }
  } finally {
    await service.stop()
    await receiver[Symbol.asyncDispose]()
    await postgres.remove()
    rmSync(folder, { recursive: true })
  }
}

/** In the project of the service, so that its channel is notified. */
async function seed(url: string): Promise<{ id: string; publicId: string }[]> {
  await query(
    url,
    `insert into checks (id, public_id, project_id, name, slug, created_at)
      select gen_random_uuid(), gen_random_uuid(), '${PROJECT_ID}', 'check ' || n, 'check-' || n, now() from generate_series(1, ${CHECKS}) n`,
  )
  await query(
    url,
    `insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at)
      select key, ${DOWN_AFTER_SECONDS - 10}, 10, 0, now(), now() from checks where project_id = '${PROJECT_ID}'`,
  )
  const rows = await query(
    url,
    `select id, public_id as "publicId" from checks where project_id = '${PROJECT_ID}' order by key`,
  )
  return rows as { id: string; publicId: string }[]
}
