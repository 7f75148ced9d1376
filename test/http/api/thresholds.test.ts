/** Thresholds and reminders over the API: their fields, the counts, and what the history has of a counted miss. */

import { beforeEach, describe, expect, it } from 'vitest'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { evaluate } from '../../support/evaluate.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

const STANDARD = {
  failures_before_down: 1,
  misses_before_down: 1,
  remind_every_seconds: null,
  remind_on_each_run: false,
}
const INTEGER = (max: number, min = 1) => `must be an integer from ${min} to ${max}`

describe('the fields', () => {
  it.each([
    { ...STANDARD, remind_every_seconds: 300 },
    { failures_before_down: 100, misses_before_down: 100, remind_every_seconds: 2_592_000, remind_on_each_run: true },
  ])('are taken from their least to their greatest value: %j', async (fields) => {
    const { id } = await api.addCheck(fields)
    expect((await api.client.get(`/checks/${id}`)).body).toMatchObject(fields)
    const { id: other } = await api.addCheck()
    expect((await api.client.patch(`/checks/${other}`, fields)).body).toMatchObject(fields)
  })

  it('keep their values when they are left out, and null ends the reminders', async () => {
    const given = {
      failures_before_down: 2,
      misses_before_down: 3,
      remind_every_seconds: 600,
      remind_on_each_run: true,
    }
    const { id } = await api.addCheck(given)
    const patch = async (fields: object) => (await api.client.patch(`/checks/${id}`, fields)).body
    expect(await patch({ name: 'Other' })).toMatchObject(given)
    let now: object = given
    for (const [name, value] of Object.entries(STANDARD)) {
      now = { ...now, [name]: value }
      expect(await patch({ [name]: value })).toMatchObject(now)
    }
    const [{ detail }] = (await api.client.get(`/audit?limit=1&target_id=${id}`)).body.entries
    expect(detail).toEqual({ changed: ['remind_on_each_run'] })
  })

  it.each<[object, string]>([
    [{ failures_before_down: 0 }, `failures_before_down ${INTEGER(100)}`],
    [{ failures_before_down: 101 }, `failures_before_down ${INTEGER(100)}`],
    [{ failures_before_down: null }, 'failures_before_down cannot be null'],
    [{ misses_before_down: 0 }, `misses_before_down ${INTEGER(100)}`],
    [{ misses_before_down: 101 }, `misses_before_down ${INTEGER(100)}`],
    [{ misses_before_down: null }, 'misses_before_down cannot be null'],
    [{ remind_every_seconds: 299 }, `remind_every_seconds ${INTEGER(2_592_000, 300)}`],
    [{ remind_every_seconds: 2_592_001 }, `remind_every_seconds ${INTEGER(2_592_000, 300)}`],
    [{ remind_on_each_run: null }, 'remind_on_each_run cannot be null'],
    [{ remind_on_each_run: 1 }, 'remind_on_each_run must be true or false'],
  ])('refuse %j, of a new check and of a change', async (fields, error) => {
    const { id } = await api.addCheck()
    for (const { status, body } of [
      await api.client.post('/checks', { project_id: api.project, name: 'x', ...fields }),
      await api.client.patch(`/checks/${id}`, fields),
    ])
      expect([status, body.error]).toEqual([400, error])
  })
})

describe('below a threshold', () => {
  let check: { id: string; public_id: string }
  const get = async () => (await api.client.get(`/checks/${check.id}`)).body
  const reasons = async () =>
    (await api.client.get(`/checks/${check.id}/flips`)).body.flips.map(
      ({ from, to, reason }: Record<string, string>) => [from, to, reason],
    )
  beforeEach(async () => {
    const hour = { period_seconds: 3_600, grace_seconds: 60 }
    check = await api.addCheck({ ...hour, failures_before_down: 3, misses_before_down: 2 })
    await api.ping(check.public_id)
  })

  it('failures are counted, a success or a warning ends the row, and the last one takes the check down', async () => {
    const fail = () => api.ping(check.public_id, { type: 'fail', exitCode: 1 })
    for (const last of ['success', 'warn'] as const) {
      await fail()
      await fail()
      expect(await get()).toMatchObject({ status: 'up', last_outcome: 'fail', consecutive_failures: 2 })
      await api.ping(check.public_id, { type: last })
      expect(await get()).toMatchObject({ status: 'up', consecutive_failures: 0 })
    }
    for (let count = 1; count <= 3; count += 1) await fail()
    expect(await get()).toMatchObject({ status: 'down', status_reason: 'failed', consecutive_failures: 3 })
    await fail()
    expect(await get()).toMatchObject({ status: 'down', consecutive_failures: 4 })
    expect((await reasons())[0]).toEqual(['up', 'down', 'failed'])
  })

  it('a miss is an entry of the history that changes no status, and the next one takes the check down', async () => {
    const { due_at, last_ping_at } = await get()
    api.moveClock(HOUR + 2 * MINUTE)
    await evaluate(api, check.id)
    const counted = await get()
    expect(counted).toMatchObject({ status: 'up', consecutive_misses: 1, last_ping_at })
    // One interval later.
    expect(Date.parse(counted.due_at)).toBe(Date.parse(due_at) + HOUR)
    const { flips } = (await api.client.get(`/checks/${check.id}/flips?limit=1`)).body
    expect(flips).toMatchObject([{ from: 'up', to: 'up', reason: 'missed', at: due_at, ping_id: null, detail: null }])
    expect((await api.client.get(`/checks/${check.id}/flips?since=${due_at}`)).body.flips).toEqual(flips)
    api.moveClock(HOUR)
    await evaluate(api, check.id)
    expect(await get()).toMatchObject({ status: 'down', consecutive_misses: 2, status_since: counted.due_at })
    expect((await reasons()).slice(0, 2)).toEqual([
      ['up', 'down', 'missed'],
      ['up', 'up', 'missed'],
    ])
    await api.ping(check.public_id)
    expect(await get()).toMatchObject({ status: 'up', consecutive_misses: 0 })
  })

  it('a threshold that is lowered to the count takes the check down', async () => {
    await api.ping(check.public_id, { type: 'fail', exitCode: 1 })
    await api.ping(check.public_id, { type: 'fail', exitCode: 1 })
    const { body } = await api.client.patch(`/checks/${check.id}`, { failures_before_down: 2 })
    expect(body).toMatchObject({ status: 'down', status_reason: 'failed', consecutive_failures: 2 })
  })
})

it('a webhook gets the number of a reminder', async () => {
  const { id } = await api.addChannel()
  const check = await api.addCheck({ remind_on_each_run: true, channels: [id] })
  for (let count = 1; count <= 3; count += 1) await api.ping(check.public_id, { type: 'fail', exitCode: 1 })
  const { rows } = await api.database.query<{ reminder: number | null }>(
    `select (e.data ->> 'reminder')::int4 as reminder from deliveries d join events e on e.id = d.event_id
      where d.channel_id = $1 order by e.id`,
    [id],
  )
  expect(rows.map(({ reminder }) => reminder)).toEqual([null, 1, 2])
  const { deliveries } = (await api.client.get(`/deliveries?check_id=${check.id}`)).body
  expect(deliveries.map(({ type }: { type: string }) => type)).toEqual(['check.down', 'check.down', 'check.down'])
})
