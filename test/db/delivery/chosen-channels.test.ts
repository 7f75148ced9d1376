/** Which channels a check notifies that has chosen some (design, section 5). */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { setInstallationChannel } from '../../../src/channels/installation-channel.ts'
import { removeChannel } from '../../../src/channels/remove-channel.ts'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { createCheckCache } from '../../../src/checks/ping/cache.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { INSTALLATION_CHANNEL_ID } from '../../../src/domain/channel.ts'
import { REACH } from '../channels/fixture.ts'
import { createFixture, type Fixture } from './fixture.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await createFixture()
})
afterAll(() => fixture.close())
let chosen: string
let other: string
beforeEach(async () => {
  await fixture.clear()
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
    await expireOverdue({ database: fixture.database, cache: createCheckCache(), now: () => 0 }, 10)
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

  it('has them no longer when they are removed, and then notifies none', async () => {
    const check = await fixture.addCheck({ channels: [chosen, other] })
    const one = await fixture.addCheck({ channels: [chosen] })
    const all = await fixture.addCheck()
    await removeChannel(channelContext(), fixture.tenant(), chosen)
    expect([await channelsOf(check.id), await channelsOf(one.id), await channelsOf(all.id)]).toEqual([
      [other],
      [],
      null,
    ])
    await fixture.ping(one, FAILED)
    expect(await fixture.deliveries()).toEqual([])
  })

  it('never has one that is removed while it is chosen', async () => {
    const check = await fixture.addCheck()
    const choose = () => updateCheck(context(), fixture.tenant(), check.id, { channels: [chosen] })
    const [update, removal] = await Promise.allSettled([
      choose(),
      removeChannel(channelContext(), fixture.tenant(), chosen),
    ])
    expect(removal.status).toBe('fulfilled')
    // Whichever came first.
    expect(await channelsOf(check.id)).toEqual(update.status === 'fulfilled' ? [] : null)
    await expect(choose()).rejects.toMatchObject({ code: 'invalid' })
  })
})
