/** What becomes of a ping that reports a warning, or an exit code that its check takes for one (design, section 4, "Warnings"). */

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { updateCheck } from '../../../src/checks/update-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { useEach } from '../../support/use.ts'
import { clock, PLAIN, pingOf, usePings } from './fixture.ts'
import { openSpoolReplica } from './spool-fixture.ts'

const t = usePings()
const one = useEach(() => t.addReplica('one'))
const check = useEach(() => t.addCheck({ spec: { warnExitCodes: [3, 24] } }))

const exit = (exitCode: number) => ({ type: 'fail', exitCode }) as const
const WARN = { type: 'warn', exitCode: null } as const
const typesOf = async (of: CheckRecord) => (await t.historyOf(of)).map(({ type }) => type)

describe('a ping with an exit code of its check', () => {
  it('is a warning: in the history, as the last outcome, and as an event about this ping', async () => {
    const ping = pingOf(check, { ...exit(24), durationMs: 12, body: Buffer.from('vanished: /tmp/x') })
    expect(await one.recorder.record(ping)).toBe('stored')
    const [stored] = await t.historyOf(check)
    expect(stored).toMatchObject({ type: 'warn', exitCode: 24, durationMs: 12 })
    const lastPingAt = Math.floor(stored!.createdAt)
    expect(await t.stateOf(check)).toMatchObject({
      ...{ status: 'up', lastOutcome: 'warn', lastPingAt, lastSuccessAt: lastPingAt, warnedAt: lastPingAt },
      ...{ lastDurationMs: 12, expectedAt: lastPingAt + 3_600_000 },
    })
    const { rows } = await t.database.query(
      `select type, flip_id as "flipId", data ->> 'status' as status, data ->> 'reason' as reason, last_ping ->> 'type' as ping,
        last_ping -> 'exit_code' as code, convert_from(last_body, 'UTF8') as body from events where check_key = $1`,
      [check.key],
    )
    const about = { ping: 'warn', code: 24, body: 'vanished: /tmp/x' }
    expect(rows).toEqual([{ type: 'check.warned', flipId: null, status: 'up', reason: 'warned', ...about }])
  })

  it('is a failure with any other code, and of a check without codes', async () => {
    const plain = await t.addCheck()
    await one.commit([pingOf(check, exit(23)), pingOf(plain, exit(3))])
    expect([await typesOf(check), await typesOf(plain)]).toEqual([['fail'], ['fail']])
  })

  it('counts as the codes say when it is recorded', async () => {
    expect(await one.record(check, exit(1))).toBe('stored')
    await updateCheck(t.context, t.tenant(), check.id, { warnExitCodes: [1] })
    expect(await one.record(check, exit(1))).toBe('stored')
    expect(await one.record(check, exit(3))).toBe('stored')
    expect(await typesOf(check)).toEqual(['fail', 'warn', 'fail'])
  })

  it('is stored once with a run id, whether it is repeated in its group or later', async () => {
    const runId = randomUUID()
    const [start, end] = [pingOf(check, { runId, type: 'start' }), pingOf(check, { runId, ...exit(3) })]
    const { outcomes } = await one.commit([start, end, end, pingOf(check, { runId, ...WARN })])
    expect(outcomes).toEqual(['stored', 'stored', 'duplicate', 'duplicate'])
    expect(await one.recorder.record(end)).toBe('duplicate')
    expect(await typesOf(check)).toEqual(['warn', 'start'])
    expect(await t.eventsOf(check)).toEqual(['check.warned'])
  })

  it('is a warning, and stored once, when it is read back from the disk', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'heartbeat-spool-'))
    await using replica = await openSpoolReplica({ url: t.url, folder })
    const runId = randomUUID()
    const end = pingOf(check, { runId, ...exit(3), at: clock.now() - 5_000 })
    await replica.spool(pingOf(check, { ...WARN, at: clock.now() - 9_000 }), end, end)
    await replica.readBack.drain()
    expect(await typesOf(check)).toEqual(['warn', 'warn'])
    expect((await t.historyOf(check)).map(({ exitCode }) => exitCode)).toEqual([3, null])
    expect(await t.stateOf(check)).toMatchObject({ status: 'up', lastOutcome: 'warn', pingsTotal: 2 })
    expect(await t.eventsOf(check)).toEqual(['check.warned'])
    await rm(folder, { recursive: true })
  })
})

describe('check.warned', () => {
  const DAY = 86_400_000
  const say = async (...pings: (Parameters<typeof pingOf>[1] & object)[]) => {
    for (const ping of pings) expect(await one.record(check, ping)).toBe('stored')
    return t.eventsOf(check)
  }

  it('is sent once while warnings go on, and again after another completion', async () => {
    expect(await say(WARN, exit(3), { type: 'start', exitCode: null }, { type: 'log', exitCode: null }, WARN)).toEqual([
      'check.warned',
    ])
    expect(await say({}, WARN)).toEqual(['check.warned', 'check.warned'])
  })

  it('is sent again after a success that one statement stored', async () => {
    await one.commit([pingOf(check, WARN)])
    expect(await one.commit([pingOf(check)])).toEqual(PLAIN)
    expect(await t.stateOf(check)).toMatchObject({ lastOutcome: 'success', warnedAt: null })
    expect(await say(WARN)).toEqual(['check.warned', 'check.warned'])
  })

  it('is sent again after 24 hours', async () => {
    await say(WARN)
    const back = async (ms: number) =>
      t.database.query(`update check_states set warned_at = warned_at - $2 * interval '1 ms' where check_key = $1`, [
        check.key,
        ms,
      ])
    await back(DAY - 60_000)
    expect(await say(WARN)).toEqual(['check.warned'])
    await back(60_000)
    expect(await say(WARN)).toEqual(['check.warned', 'check.warned'])
  })

  it('follows check.up where the warning ends down', async () => {
    expect(await say(exit(1), exit(3))).toEqual(['check.down', 'check.up', 'check.warned'])
    expect(await t.reasonsOf(check)).toEqual(['recovered', 'failed', 'created'])
  })
})
