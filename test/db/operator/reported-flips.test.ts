/** Which flips of a declared check are reported in its cluster: each once, also when a leader dies between two steps. */

import { describe, expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import type { Occurrence } from '../../../src/kubernetes/recorder.ts'
import { createReporter } from '../../../src/operator/status/report.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { listUnreportedFlips, saveReportedFlip } from '../../../src/store/history/reported-flips.ts'
import { aHeartbeatCheck } from '../../support/builders.ts'
import { serviceWith } from '../../support/operator-service.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, NOW } from '../checks/fixture.ts'
import { RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
const check = useEach(async () => (await t.declare()).check)

const unreported = async (key: number) => (await listUnreportedFlips(t.database, key)).map(({ reason }) => reason)
const reportAll = async (key: number) =>
  saveReportedFlip(t.database, key, (await listUnreportedFlips(t.database, key)).at(-1)!.id)

describe('the unreported flips of a check', () => {
  it('are those after the reported one, oldest first, several of one millisecond too', async () => {
    await t.pinged(check, 'success', NOW + 5)
    expect(await unreported(check.key)).toEqual(['created', 'first_success'])
    await reportAll(check.key)
    expect(await unreported(check.key)).toEqual([])
    await t.pinged(check, 'fail', NOW + 5)
    await t.pinged(check, 'success', NOW + 5)
    expect(await unreported(check.key)).toEqual(['failed', 'recovered'])
    const [flip] = await listUnreportedFlips(t.database, check.key)
    expect(flip).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      at: expect.any(Number),
      from: 'up',
      to: 'down',
      reason: 'failed',
      pingId: expect.any(String),
    })
  })

  it('hold one that is dated before the reported one and was found after it', async () => {
    await t.pinged(check, 'success', NOW)
    await reportAll(check.key)
    await t.database.query('update service_beat set beat_at = now()')
    await t.database.query(
      `update check_states set wake_at = now() - interval '1 minute', due_at = now() - interval '1 hour', expected_at = now() - interval '2 hours',
         since = now() - interval '1 day', stamped_at = now() - interval '1 day'`,
    )
    await expireOverdue({ database: t.database, now: () => 0 }, 10)
    expect(await unreported(check.key)).toEqual(['missed'])
  })

  it('leave out a miss that changed no status, and have an outage', async () => {
    await reportAll(check.key)
    for (const [id, reason] of [
      ['e', 'missed'],
      ['f', 'outage'],
    ])
      await t.database.query(
        `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
          values ($2, $1, now(), now(), 1, 1, $3)`,
        [check.key, `ffffffff-ffff-7fff-bfff-fffffffffff${id}`, reason],
      )
    expect(await unreported(check.key)).toEqual(['outage'])
  })

  it('are the newest hundred when there are more', async () => {
    for (let i = 0; i < 51; i += 1) {
      await t.pinged(check, 'fail', NOW + 2 * i)
      await t.pinged(check, 'success', NOW + 2 * i + 1)
    }
    const flips = await listUnreportedFlips(t.database, check.key)
    expect(flips).toHaveLength(100)
    expect(flips.at(-1)).toMatchObject({ reason: 'recovered', at: NOW + 101 })
    expect(flips[0]).toMatchObject({ reason: 'failed', at: NOW + 2 })
  })

  it('leave out what happened to a check before it was adopted, also when it was reported in its cluster before', async () => {
    const { id } = await addCheck(t, t.tenant)
    const resource = { ...RESOURCE, name: 'adopting' }
    const { rows } = await t.database.query<{ key: number }>('select key from checks where id = $1', [id])
    const { key } = rows[0]!
    await t.pinged({ key }, 'fail', NOW + 1)
    await t.declare({ resource, adoptId: id })
    expect(await unreported(key)).toEqual([])
    await t.pinged({ key }, 'success', NOW + 2)
    expect(await unreported(key)).toEqual(['recovered'])
    await t.retire('Retain', resource)
    await t.pinged({ key }, 'fail', NOW + 3)
    await t.declare({ resource, adoptId: id })
    expect(await unreported(key)).toEqual([])
  })

  it('leave out what happened before its resource was deleted and created again', async () => {
    await t.pinged(check, 'fail', NOW + 1)
    await t.retire('Delete')
    const revived = await t.declare()
    expect(revived.check.key).toBe(check.key)
    expect(await unreported(check.key)).not.toContain('failed')
    await t.pinged(check, 'success', NOW + 2)
    expect((await unreported(check.key)).at(-1)).toBe('first_success')
  })

  it('stay when the specification changes', async () => {
    await t.pinged(check, 'fail', NOW + 1)
    await t.declare({ name: 'Another' })
    expect(await unreported(check.key)).toEqual(['created', 'failed'])
  })
})

describe('the reported flip', () => {
  it('never goes back, and is not saved for a check that is gone', async () => {
    await t.pinged(check, 'fail', NOW + 1)
    await t.pinged(check, 'success', NOW + 2)
    const [first, , last] = await listUnreportedFlips(t.database, check.key)
    await saveReportedFlip(t.database, check.key, last!.id)
    await saveReportedFlip(t.database, check.key, first!.id)
    expect(await unreported(check.key)).toEqual([])
    await t.retire('Delete')
    await saveReportedFlip(t.database, check.key, last!.id)
    const { rows } = await t.database.query('select * from reported_flips')
    expect(rows).toEqual([])
  })
})

describe('a reporter', () => {
  const reject = () => Promise.reject(new Error('not expected'))
  const write = ({ onWritten }: Occurrence) => onWritten?.()

  /** One leader: the reasons of its Events are kept, and `settle` gets each of them. */
  function startLeader(settle: (occurrence: Occurrence) => void) {
    const recorded: string[] = []
    const reporter = createReporter({
      claims: { installation: 'i1' },
      client: { get: reject, mergePatch: reject, replace: async (_type, body) => body as never },
      cache: { put: () => {} },
      service: serviceWith(t.context),
      recorder: {
        record(_regarding, occurrence) {
          recorded.push(occurrence.reason)
          settle(occurrence)
        },
      },
    })
    const object = aHeartbeatCheck({ metadata: RESOURCE, status: { observedGeneration: 1 } })
    const findings = { sync: { kind: 'synced' }, published: null } as const
    return {
      recorded,
      report: async (seen = object) => reporter.report(seen, findings, (await t.read()) as CheckRecord),
      object,
    }
  }

  it('records each flip once, and the next leader what the one before had not written', async () => {
    await t.pinged(check, 'fail', NOW + 1)
    const killed = startLeader(() => {})
    await killed.report()
    await killed.report()
    // The id of each makes the name of its Event: the recorder writes it once.
    expect(killed.recorded).toEqual(['Failed', 'Failed'])
    await t.pinged(check, 'success', NOW + 2)
    await killed.report()
    expect(killed.recorded.slice(2)).toEqual(['Failed', 'Recovered'])

    const next = startLeader(write)
    await next.report()
    expect(next.recorded).toEqual(['Failed', 'Recovered'])
    expect(await unreported(check.key)).toEqual([])
    await next.report()
    expect(next.recorded).toHaveLength(2)

    const last = startLeader(write)
    await last.report()
    expect(last.recorded).toEqual([])
  })

  it('records again what was lost, and saves nothing until all are written', async () => {
    const written: (() => void)[] = []
    const leader = startLeader(({ onWritten }) => written.push(onWritten!))
    await t.pinged(check, 'fail', NOW + 1)
    await t.pinged(check, 'success', NOW + 2)
    await leader.report()
    // The Event of the failure is lost.
    written[1]!()
    await leader.report()
    expect(leader.recorded).toEqual(['Failed', 'Recovered', 'Failed', 'Recovered'])
    written[3]!()
    expect(await unreported(check.key)).toEqual(['created', 'failed', 'recovered'])
    written[2]!()
    await eventually('they are saved', async () => (await unreported(check.key)).length === 0)
  })

  it('leaves the flips of a new resource to its second reconcile', async () => {
    await t.declare({ suspend: true })
    const leader = startLeader(write)
    const { status: _, ...unseen } = leader.object
    await leader.report(unseen)
    expect(leader.recorded).toEqual([])
    await leader.report()
    expect(leader.recorded).toEqual(['Suspended'])
  })
})
