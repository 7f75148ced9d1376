/** Channels that are notified of an incident after a while: what is sent and stored, on clocks that a test moves. */

import { beforeEach, describe, expect, it } from 'vitest'
import { createChannel } from '../../../src/channels/create-channel.ts'
import { updateChannel } from '../../../src/channels/update-channel.ts'
import { acknowledgeCheck, endAcknowledgement } from '../../../src/checks/acknowledge.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { CHECK_EVENT_TYPES } from '../../../src/domain/event.ts'
import { newId } from '../../../src/runtime/ids.ts'
import { removeSilence } from '../../../src/silences/remove-silence.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { createDatabase, type Database } from '../../../src/store/postgres/database.ts'
import { insertSilence } from '../../../src/store/silences/silences.ts'
import { HOUR, MINUTE, NOON } from '../../support/builders.ts'
import { createManualClock, manualClockUrl } from '../../support/database-clock.ts'
import { addTenant } from '../../support/tenant.ts'
import { use } from '../../support/use.ts'
import { REACH } from '../channels/fixture.ts'
import { createReceiver, useDelivery } from './fixture.ts'

const fixture = useDelivery()
/** Two replicas, which read the clock of the test. */
const clocked = use(async () => {
  const setClock = await createManualClock(fixture.database, NOON)
  const connect = (name: string) => createDatabase({ url: manualClockUrl(fixture.url), name, connections: 1 })
  const replicas = [connect('one'), connect('two')] as const
  const close = () => Promise.all(replicas.map((replica) => replica.close()))
  return { setClock, replicas, [Symbol.asyncDispose]: async () => void (await close()) }
})

const FAILED = { type: 'fail', exitCode: 3 } as const
const IN_30_MIN = { afterSeconds: 1_800 }
const context = () => ({ database: fixture.database, clock: fixture.clock })
const channelContext = () => ({ ...context(), sealer: fixture.sealer, reach: REACH })
async function expire(database: Database = clocked.replicas[0]) {
  const { failed } = await expireOverdue({ database, now: () => 0 }, 10)
  expect(failed).toEqual([])
}

/** Time passes, and then the evaluator looks. */
async function pass(ms: number, look: () => Promise<unknown> = () => expire()) {
  await fixture.clock.advance(ms)
  await clocked.setClock(fixture.clock.now())
  await clocked.replicas[0].query('update service_beat set beat_at = clock_timestamp()')
  await look()
}

/** What was stored for a channel, oldest first: the type, or why it is not sent, and of what. */
async function got(channelId: string) {
  const { rows } = await fixture.database.query<{ type: string; reason: string | null; escalated: boolean }>(
    `select d.type, d.reason, e.data ? 'escalated' as escalated from deliveries d join events e on e.id = d.event_id
      where d.channel_id = $1 order by d.event_id`,
    [channelId],
  )
  return rows.map(({ type, reason, escalated }) =>
    [type.slice(6), ...(escalated ? ['escalated'] : []), ...(reason === null ? [] : [`not sent: ${reason}`])].join(' '),
  )
}

const wakeOf = async ({ key }: CheckRecord) =>
  (await fixture.database.query<{ at: number }>('select wake_at as at from check_states where check_key = $1', [key]))
    .rows[0]!.at

let check: CheckRecord
let first: string
beforeEach(async () => {
  await clocked.setClock(fixture.clock.now())
  check = await fixture.addCheck({ spec: { periodSeconds: 2_592_000 } })
  first = await fixture.addChannel()
})

describe('a channel with after_seconds', () => {
  it('is sent the incident at its time, by one of two replicas, and the end', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    const { send, got: sent } = createReceiver()
    const outbox = fixture.createOutbox(send)
    await fixture.ping(check, FAILED)
    const downAt = fixture.clock.now()
    expect(await wakeOf(check)).toBe(downAt + 30 * MINUTE)
    await pass(30 * MINUTE - 1)
    await outbox.drain()
    expect(sent.map(({ channel }) => channel.id)).toEqual([first])
    await pass(1, () => Promise.all(clocked.replicas.map((one) => expire(one))))
    await outbox.drain()
    expect(sent[1]).toMatchObject({
      channel: { id: second },
      event: {
        type: 'check.down',
        facts: {
          reason: 'failed',
          status: 'down',
          escalated: true,
          down_for_seconds: 1_800,
          occurred_at: new Date(downAt).toISOString(),
          incident_at: new Date(downAt).toISOString(),
        },
        lastPing: { type: 'fail', exit_code: 3 },
      },
    })
    await pass(HOUR)
    await fixture.ping(check)
    await outbox.drain()
    expect(await got(second)).toEqual(['down escalated', 'up'])
    expect(await got(first)).toEqual(['down', 'up'])
    expect(sent).toHaveLength(4)
  })

  it('without check.up is sent each incident', async () => {
    const second = await fixture.addChannel({ ...IN_30_MIN, eventTypes: ['check.down'] })
    for (let incident = 1; incident <= 2; incident += 1) {
      await fixture.ping(check, FAILED)
      await pass(30 * MINUTE)
      await fixture.ping(check)
      await pass(HOUR)
    }
    expect(await got(second)).toEqual(['down escalated', 'down escalated'])
  })

  it('of an incident that ended before has one row, which names the channel', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.ping(check, FAILED)
    await pass(29 * MINUTE)
    await fixture.ping(check)
    await pass(HOUR)
    expect(await got(second)).toEqual(['up not sent: escalation'])
    const row = (await fixture.deliveries()).find(({ channel_id }) => channel_id === second)
    expect(row).toMatchObject({
      status: 3,
      next_attempt_at: null,
      cause: { kind: 'channel', id: second },
    })
    expect(await got(first)).toEqual(['down', 'up'])
  })

  it('two with different times are each sent it at their own', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    const third = await fixture.addChannel({ afterSeconds: 3_600 })
    await fixture.ping(check, FAILED)
    await pass(30 * MINUTE)
    expect([await got(second), await got(third)]).toEqual([['down escalated'], []])
    await pass(30 * MINUTE - 1)
    expect(await got(third)).toEqual([])
    await pass(1)
    expect([await got(second), await got(third)]).toEqual([['down escalated'], ['down escalated']])
    await fixture.ping(check)
    expect([await got(second), await got(third)]).toEqual([
      ['down escalated', 'up'],
      ['down escalated', 'up'],
    ])
    expect(await got(first)).toEqual(['down', 'up'])
  })

  it('is sent nothing else, whatever it wants', async () => {
    const second = await fixture.addChannel({ ...IN_30_MIN, eventTypes: CHECK_EVENT_TYPES })
    const all = await fixture.addChannel({ eventTypes: CHECK_EVENT_TYPES })
    await fixture.ping(check, { type: 'warn' })
    await pauseCheck(context(), fixture.tenant(), check.id)
    await resumeCheck(context(), fixture.tenant(), check.id)
    await fixture.ping(check)
    await fixture.ping(check, FAILED)
    await pass(HOUR)
    await pauseCheck(context(), fixture.tenant(), check.id)
    expect(await got(all)).toEqual(['warned', 'paused', 'resumed', 'down', 'paused'])
    expect(await got(second)).toEqual(['down escalated'])
  })

  it('of a kind that keeps incidents is sent that a check with its incident is paused', async () => {
    const settings = { kind: 'pagerduty', routingKey: 'a'.repeat(32) } as const
    const known = await fixture.addChannel({ ...IN_30_MIN, settings })
    const later = await fixture.addChannel({ afterSeconds: 86_400, settings })
    await pauseCheck(context(), fixture.tenant(), check.id)
    await resumeCheck(context(), fixture.tenant(), check.id)
    expect([await got(known), await got(later)]).toEqual([[], []])
    await fixture.ping(check, FAILED)
    await pass(HOUR)
    await pauseCheck(context(), fixture.tenant(), check.id)
    expect(await got(known)).toEqual(['down escalated', 'paused'])
    expect(await got(later)).toEqual(['paused not sent: escalation'])
  })

  it('that is muted, or serves another project, or is not chosen, is not sent it', async () => {
    const muted = await fixture.addChannel({ ...IN_30_MIN, muted: true })
    const mutedLater = await fixture.addChannel({ afterSeconds: 86_400, muted: true })
    const unchosen = await fixture.addChannel({ afterSeconds: 600 })
    const other = await addTenant({ database: fixture.database })
    const foreign = await fixture.addChannel({ afterSeconds: 300, organizationId: other.organizationId })
    const unwanted = await fixture.addChannel({ afterSeconds: 900, eventTypes: ['check.late'] })
    await fixture.database.query('update checks set channels = $1', [[first, muted, mutedLater, unwanted]])
    await fixture.ping(check, FAILED)
    expect(await wakeOf(check)).toBe(fixture.clock.now() + 30 * MINUTE)
    await pass(HOUR)
    await fixture.ping(check)
    expect(await got(muted)).toEqual(['down escalated not sent: muted', 'up not sent: muted'])
    expect(await got(mutedLater)).toEqual(['up not sent: muted'])
    for (const id of [unchosen, foreign, unwanted]) expect(await got(id)).toEqual([])
  })
})

describe('an incident that is held back', () => {
  /** For an hour from now on. Returns its id. */
  async function silence() {
    const [startsAt, endsAt] = [fixture.clock.now(), fixture.clock.now() + HOUR]
    const id = newId(startsAt)
    await insertSilence(fixture.database, {
      ...{ id, organizationId: fixture.tenant().organizationId, projectId: check.projectId, checkId: null, tag: null },
      ...{ startsAt, endsAt, schedule: null, timeZone: null, dialect: null, durationSeconds: null, comment: 'Disks' },
      ...{ createdBy: { kind: 'user', id: null, name: 'Ada' }, createdAt: startsAt, kubernetes: null, selector: null },
    })
    return id
  }

  it('acknowledged is not escalated, and is when the acknowledgement is ended', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.ping(check, FAILED)
    await acknowledgeCheck(context(), fixture.tenant(), check.id)
    await pass(HOUR)
    expect(await got(second)).toEqual([])
    await endAcknowledgement(context(), fixture.tenant(), check.id)
    await pass(0)
    expect(await got(second)).toEqual(['down escalated'])
  })

  it('acknowledged for a time is escalated after it', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.ping(check, FAILED)
    await acknowledgeCheck(context(), fixture.tenant(), check.id, { forSeconds: 3_600 })
    await pass(HOUR - 1)
    expect(await got(second)).toEqual([])
    await pass(1)
    expect(await got(second)).toEqual(['down escalated'])
  })

  it('silenced is escalated after the silence', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.ping(check, FAILED)
    await silence()
    await pass(HOUR - 1)
    expect(await got(second)).toEqual([])
    await pass(1)
    expect(await got(second)).toEqual(['down escalated'])
  })

  it('silenced, and changed in another way, is acknowledged where it was notified, and nowhere else', async () => {
    const settings = { kind: 'pagerduty', routingKey: 'a'.repeat(32) } as const
    const second = await fixture.addChannel({ ...IN_30_MIN, settings })
    const later = await fixture.addChannel({ afterSeconds: 86_400, settings })
    await fixture.ping(check, FAILED)
    await pass(30 * MINUTE)
    await silence()
    await updateCheck({ ...context(), database: clocked.replicas[0] }, fixture.tenant(), check.id, { tags: ['db'] })
    await acknowledgeCheck(context(), fixture.tenant(), check.id)
    expect(await got(second)).toEqual(['down escalated', 'acknowledged'])
    expect(await got(later)).toEqual([])
  })

  it('silenced is escalated at once when the silence is removed', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.ping(check, FAILED)
    const id = await silence()
    await pass(31 * MINUTE)
    await removeSilence(context(), fixture.tenant(), id)
    await pass(0)
    expect(await got(second)).toEqual(['down escalated'])
  })
})

describe('while the incident is open', () => {
  const SLACK = { kind: 'slack', name: 'Second', config: { url: 'https://hooks.example.com/x' } } as const

  it('a channel that is made is sent it at once, if its time has passed', async () => {
    await fixture.ping(check, FAILED)
    await pass(HOUR)
    const { id } = await createChannel(channelContext(), fixture.tenant(), { ...SLACK, ...IN_30_MIN })
    const later = await createChannel(channelContext(), fixture.tenant(), { ...SLACK, afterSeconds: 7_200 })
    await pass(0)
    expect([await got(id), await got(later.id)]).toEqual([['down escalated'], []])
    await pass(HOUR)
    expect(await got(later.id)).toEqual(['down escalated'])
  })

  it('a channel that is changed is sent it by its new time', async () => {
    const { id } = await createChannel(channelContext(), fixture.tenant(), { ...SLACK, afterSeconds: 86_400 })
    await fixture.ping(check, FAILED)
    await pass(HOUR)
    await updateChannel(channelContext(), fixture.tenant(), id, { name: 'Other', ...IN_30_MIN })
    await pass(0)
    expect(await got(id)).toEqual(['down escalated'])
  })

  it('a channel that gets a time after it was notified is sent the end, and nothing twice', async () => {
    const { id } = await createChannel(channelContext(), fixture.tenant(), SLACK)
    const never = await fixture.addChannel({ afterSeconds: 86_400 })
    await fixture.ping(check, FAILED)
    await updateChannel(channelContext(), fixture.tenant(), id, IN_30_MIN)
    await pass(10 * MINUTE)
    await fixture.ping(check)
    expect([await got(id), await got(never)]).toEqual([['down', 'up'], ['up not sent: escalation']])
    await fixture.ping(check, FAILED)
    await pass(HOUR)
    await updateChannel(channelContext(), fixture.tenant(), id, { afterSeconds: 7_200 })
    await pass(2 * HOUR)
    expect((await got(id)).slice(2)).toEqual(['down escalated'])
  })

  describe('and others were sent it before', () => {
    let early: string
    beforeEach(async () => {
      early = await fixture.addChannel(IN_30_MIN)
    })

    it('a channel whose time is lowered is sent it at once, and the end, and no other one is sent it again', async () => {
      const { id } = await createChannel(channelContext(), fixture.tenant(), { ...SLACK, afterSeconds: 86_400 })
      await fixture.ping(check, FAILED)
      await pass(HOUR)
      await updateChannel(channelContext(), fixture.tenant(), id, { afterSeconds: 600 })
      await pass(0)
      expect([await got(early), await got(id)]).toEqual([['down escalated'], ['down escalated']])
      await fixture.ping(check)
      for (const one of [early, id]) expect(await got(one)).toEqual(['down escalated', 'up'])
      expect(await got(first)).toEqual(['down', 'up'])
    })

    it('a channel whose time is lowered while the incident is in a hand is not sent the end alone', async () => {
      const { id } = await createChannel(channelContext(), fixture.tenant(), { ...SLACK, afterSeconds: 86_400 })
      await fixture.ping(check, FAILED)
      await pass(HOUR)
      await acknowledgeCheck(context(), fixture.tenant(), check.id)
      await updateChannel(channelContext(), fixture.tenant(), id, { afterSeconds: 600 })
      await pass(0)
      await fixture.ping(check)
      expect(await got(id)).toEqual(['up not sent: escalation'])
      expect(await got(early)).toEqual(['down escalated', 'up'])
    })

    it('a channel that is made, or that the check chooses, is sent it too', async () => {
      const unchosen = await fixture.addChannel({ afterSeconds: 600 })
      await fixture.database.query('update checks set channels = $1', [[first, early]])
      await fixture.ping(check, FAILED)
      await pass(HOUR)
      const clockedContext = { ...context(), database: clocked.replicas[0] }
      await updateCheck(clockedContext, fixture.tenant(), check.id, { channels: [first, early, unchosen] })
      await pass(0)
      expect([await got(early), await got(unchosen)]).toEqual([['down escalated'], ['down escalated']])
      await fixture.database.query('update checks set channels = null')
      const { id } = await createChannel(channelContext(), fixture.tenant(), { ...SLACK, afterSeconds: 600 })
      await pass(0)
      expect(await got(id)).toEqual(['down escalated'])
    })

    it.each(['success', 'the acknowledgement is ended'])(
      'a reminder that is not sent hides nothing that was, until %s',
      async (end) => {
        await fixture.database.query('update check_states set remind_on_each_run = true')
        await fixture.ping(check, FAILED)
        await pass(HOUR)
        await acknowledgeCheck(context(), fixture.tenant(), check.id)
        await fixture.ping(check, FAILED)
        await updateChannel(channelContext(), fixture.tenant(), early, { name: 'Other' })
        if (end !== 'success') {
          await endAcknowledgement(context(), fixture.tenant(), check.id)
          await pass(0)
        }
        await fixture.ping(check)
        expect(await got(early)).toEqual(['down escalated', 'down not sent: acknowledged', 'up'])
      },
    )

    it('a channel that could not be reached is sent it again after a change of it', async () => {
      await fixture.ping(check, FAILED)
      await pass(HOUR)
      await fixture.database.query('update deliveries set status = 2, next_attempt_at = null where channel_id = $1', [
        early,
      ])
      await updateChannel(channelContext(), fixture.tenant(), early, { name: 'Mended' })
      await pass(0)
      await fixture.ping(check)
      expect(await got(early)).toEqual(['down escalated', 'down escalated', 'up'])
    })

    it('a change of a channel that was sent it adds no event', async () => {
      await fixture.ping(check, FAILED)
      await pass(HOUR)
      const count = async () => (await fixture.database.query('select from events')).rowCount
      const before = await count()
      await updateChannel(channelContext(), fixture.tenant(), early, { name: 'Other' })
      await pass(HOUR)
      expect(await count()).toBe(before)
    })
  })

  it('a check that depends on one that is down is not escalated until that one is up', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    const database = await fixture.addCheck({ spec: { periodSeconds: 2_592_000 } })
    await fixture.database.query('update checks set depends_on = array[$2::uuid] where key = $1', [
      check.key,
      database.id,
    ])
    await fixture.ping(check, FAILED)
    await fixture.ping(database, FAILED)
    await pass(HOUR)
    const ofCheck = async () => (await got(second)).filter((one) => one.startsWith('down')).length
    expect(await ofCheck()).toBe(1)
    await fixture.ping(database)
    await pass(MINUTE)
    expect(await ofCheck()).toBe(2)
  })

  it('a check that goes down again after a pause is escalated at its time, not at once', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.ping(check, FAILED)
    await pauseCheck(context(), fixture.tenant(), check.id)
    await pass(HOUR)
    await resumeCheck(context(), fixture.tenant(), check.id)
    await fixture.ping(check, FAILED)
    await pass(30 * MINUTE - 1)
    expect((await got(second)).filter((one) => one.startsWith('down'))).toEqual([])
    await pass(1)
    expect((await got(second)).filter((one) => one.startsWith('down'))).toEqual(['down escalated'])
  })

  it('a channel that the check chooses is sent it', async () => {
    const second = await fixture.addChannel(IN_30_MIN)
    await fixture.database.query('update checks set channels = $1', [[first]])
    await fixture.ping(check, FAILED)
    await pass(HOUR)
    expect(await got(second)).toEqual([])
    const clockedContext = { ...context(), database: clocked.replicas[0] }
    await updateCheck(clockedContext, fixture.tenant(), check.id, { channels: [first, second] })
    await pass(0)
    expect(await got(second)).toEqual(['down escalated'])
  })

  it('only checks that are down are woken, of those that the channel serves', async () => {
    const up = await fixture.addCheck()
    await fixture.ping(up)
    const other = await addTenant({ database: fixture.database })
    await fixture.ping(check, FAILED)
    await fixture.database.query('update check_states set wake_at = $1::timestamptz', ['2030-01-01T00:00:00Z'])
    const sleeping = Date.UTC(2030, 0, 1)
    await createChannel(channelContext(), other, { ...SLACK, ...IN_30_MIN })
    await createChannel(channelContext(), fixture.tenant(), SLACK)
    expect([await wakeOf(up), await wakeOf(check)]).toEqual([sleeping, sleeping])
    await createChannel(channelContext(), fixture.tenant(), { ...SLACK, ...IN_30_MIN })
    expect([await wakeOf(up), await wakeOf(check)]).toEqual([sleeping, fixture.clock.now()])
  })
})
