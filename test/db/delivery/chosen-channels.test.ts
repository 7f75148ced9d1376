/** Which channels a check notifies that has chosen some (design, section 5). */

import { beforeEach, describe, expect, it } from 'vitest'
import { setInstallationChannel } from '../../../src/channels/installation-channel.ts'
import { removeChannel } from '../../../src/channels/remove-channel.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { INSTALLATION_CHANNEL_ID } from '../../../src/domain/channel.ts'
import { lockStates } from '../../../src/store/checks/states.ts'
import { keepChoosable } from '../../../src/store/outbox/channels.ts'
import { untilWaiting } from '../../support/database.ts'
import { REACH } from '../channels/fixture.ts'
import { useDelivery } from './fixture.ts'

const fixture = useDelivery()
let chosen: string
let other: string
beforeEach(async () => {
  chosen = await fixture.addChannel()
  other = await fixture.addChannel()
})

const FAILED = { type: 'fail', exitCode: 3 } as const
const context = () => ({ database: fixture.database, clock: fixture.clock })
const channelContext = () => ({ ...context(), sealer: fixture.sealer, reach: REACH })
const typesOf = async (channel: string) =>
  (await fixture.deliveries()).filter((row) => row.channel_id === channel).map(({ type }) => type)
const channelsOf = async (id: string) => (await getCheck(context(), fixture.tenant(), id)).channels

describe('a check with chosen channels', () => {
  it('notifies them alone, of what pings and people do', async () => {
    const check = await fixture.addCheck({ channels: [chosen] })
    await fixture.ping(check, FAILED)
    await fixture.ping(check)
    await pauseCheck(context(), fixture.tenant(), check.id)
    expect(await typesOf(chosen)).toEqual(['check.down', 'check.up', 'check.paused'])
    expect(await typesOf(other)).toEqual([])
  })

  it('notifies them alone of a missed ping', async () => {
    const check = await fixture.addCheck({ channels: [other] })
    await fixture.ping(check)
    await fixture.database.query(
      `update check_states set due_at = now() - interval '1 second', expected_at = due_at, wake_at = now() - interval '1 second',
        last_ping_at = last_ping_at - interval '1 day', since = since - interval '1 day'`,
    )
    await fixture.database.query('update service_beat set beat_at = clock_timestamp()')
    await expireOverdue({ database: fixture.database, now: () => 0 }, 10)
    expect(await typesOf(other)).toEqual(['check.down'])
    expect(await typesOf(chosen)).toEqual([])
  })

  it('notifies none when it has chosen none, but the Alertmanager of the installation', async () => {
    await setInstallationChannel(context(), { urls: ['http://am.example.com'], labels: {} } as never)
    const check = await fixture.addCheck({ channels: [] })
    await fixture.ping(check, FAILED)
    expect((await fixture.deliveries()).map((row) => row.channel_id)).toEqual([INSTALLATION_CHANNEL_ID])
  })

  it('beside one that has not chosen: the same failure goes to all of them', async () => {
    const [first, second] = [await fixture.addCheck({ channels: [chosen] }), await fixture.addCheck()]
    await fixture.ping(first, FAILED)
    await fixture.ping(second, FAILED)
    expect(await typesOf(chosen)).toHaveLength(2)
    expect(await typesOf(other)).toHaveLength(1)
  })

  it('has them no longer when they are removed', async () => {
    const check = await fixture.addCheck({ channels: [other, chosen] })
    const all = await fixture.addCheck()
    await removeChannel(channelContext(), fixture.tenant(), chosen)
    expect([await channelsOf(check.id), await channelsOf(all.id)]).toEqual([[other], null])
  })

  it('keeps the only one that it chose from being removed, muted or not, until others are chosen', async () => {
    const check = await fixture.addCheck({ channels: [chosen] })
    await fixture.addCheck({ channels: [chosen, other] })
    await fixture.database.query('update channels set muted = true where id = $1', [chosen])
    const remove = () => removeChannel(channelContext(), fixture.tenant(), chosen)
    await expect(remove()).rejects.toMatchObject({
      code: 'channel_in_use',
      message: expect.stringMatching(/^1 check notifies this channel alone/),
    })
    await fixture.addCheck({ channels: [chosen] })
    await expect(remove()).rejects.toThrow(/^2 checks notify this channel alone/)
    expect(await channelsOf(check.id)).toEqual([chosen])
    await fixture.database.query('update checks set channels = array[$1::uuid] where cardinality(channels) = 1', [
      other,
    ])
    await remove()
    expect(await channelsOf(check.id)).toEqual([other])
  })

  it('notifies all channels again when the only one is removed all the same', async () => {
    const check = await fixture.addCheck({ channels: [chosen] })
    await removeChannel(channelContext(), fixture.tenant(), chosen, { force: true })
    expect(await channelsOf(check.id)).toBeNull()
    await fixture.ping(check, FAILED)
    expect(await typesOf(other)).toEqual(['check.down'])
  })

  it('never has one that is removed while it is chosen', async () => {
    const check = await fixture.addCheck()
    const choose = () => updateCheck(context(), fixture.tenant(), check.id, { channels: [chosen] })
    const [update, removal] = await Promise.allSettled([
      choose(),
      removeChannel(channelContext(), fixture.tenant(), chosen),
    ])
    // Whichever came first.
    expect([update.status, removal.status].toSorted()).toEqual(['fulfilled', 'rejected'])
    expect(await channelsOf(check.id)).toEqual(update.status === 'fulfilled' ? [chosen] : null)
  })

  it('is locked before its channels are: a removal waits for a change of the check, which can still choose', async () => {
    const check = await fixture.addCheck({ channels: [other, chosen] })
    let removal: Promise<void> | undefined
    await fixture.database.transaction(async (tx) => {
      await lockStates(tx, [check.key])
      removal = removeChannel(channelContext(), fixture.tenant(), chosen)
      removal.catch(() => {})
      await untilWaiting(fixture, 1)
      await tx.query(`set local lock_timeout = '2s'`)
      expect(await keepChoosable(tx, check.projectId, [chosen])).toEqual(new Set([chosen]))
      await tx.query('update checks set channels = array[$1::uuid] where key = $2', [chosen, check.key])
    })
    await expect(removal).rejects.toMatchObject({ code: 'channel_in_use' })
    expect(await channelsOf(check.id)).toEqual([chosen])
  })
})

describe('a channel that 30,000 checks chose', () => {
  /** Each statement that changes checks notes its transaction, and how many of them it changed. */
  async function watchUpdates() {
    await fixture.database.query(`
      create table if not exists updates (transaction xid8, rows int);
      delete from updates;
      create or replace function note_update() returns trigger language plpgsql as
        $$ begin insert into updates select pg_current_xact_id(), count(*) from changed; return null; end $$;
      create or replace trigger note_update after update on checks
        referencing new table as changed for each statement execute function note_update()`)
  }
  async function addMany(channel: string) {
    const { projectId } = await fixture.addCheck()
    await fixture.database.query(
      `insert into checks (id, public_id, project_id, name, slug, created_at, updated_at, channels)
        select gen_random_uuid(), gen_random_uuid(), $1, 'Many', 'many-' || n, now(), now(), array[$2::uuid]
        from generate_series(1, 30000) n`,
      [projectId, channel],
    )
  }
  const mostAtOnce = async () => {
    const { rows } = await fixture.database.query<{ most: number; all: number }>(
      `select max(rows)::int as most, sum(rows)::int as all from (select sum(rows) as rows from updates group by transaction) t`,
    )
    return rows[0]!
  }

  it('leaves their lists in many short transactions', async () => {
    await addMany(chosen)
    await watchUpdates()
    await expect(removeChannel(channelContext(), fixture.tenant(), chosen)).rejects.toThrow(/^30000 checks notify/)
    await removeChannel(channelContext(), fixture.tenant(), chosen, { force: true })
    expect(await mostAtOnce()).toEqual({ most: 100, all: 30_000 })
    const { rows } = await fixture.database.query('select from checks where channels is not null limit 1')
    expect(rows).toEqual([])
  })
})
