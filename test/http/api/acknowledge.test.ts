/** Acknowledging a check that is down, over the API. */

import { describe, expect, it } from 'vitest'
import { HOUR } from '../../support/builders.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

async function takeDown(): Promise<{ id: string; public_id: string }> {
  const check = await api.addCheck()
  await api.ping(check.public_id, { type: 'fail', exitCode: 1 })
  return check
}
const acknowledge = (id: string, body?: object, key?: string) =>
  api.client.post(`/checks/${id}/acknowledge`, body, key === undefined ? {} : { key })
const end = (id: string) => api.client.delete(`/checks/${id}/acknowledge`)
const read = async (id: string) => (await api.client.get(`/checks/${id}`)).body.acknowledged

describe('an acknowledgement', () => {
  it('is in the full check and in the list, with who made it, until the incident ends', async () => {
    const { id, public_id } = await takeDown()
    expect(await read(id)).toBeNull()
    const { status, body } = await acknowledge(id)
    const by = { kind: 'api_key', id: expect.any(String), name: 'admin' }
    const shown = { by, at: expect.stringMatching(/Z$/), until: null, comment: null }
    expect([status, body.acknowledged, body.status]).toEqual([200, shown, 'down'])
    expect(await read(id)).toEqual(body.acknowledged)
    const { checks } = (await api.client.get(`/checks?project_id=${api.project}&limit=100`)).body
    expect(checks.find((check: { id: string }) => check.id === id).acknowledged).toEqual(body.acknowledged)
    await api.ping(public_id, { type: 'fail', exitCode: 2 })
    expect(await read(id)).toEqual(body.acknowledged)
    await api.ping(public_id)
    expect(await read(id)).toBeNull()
    await api.ping(public_id, { type: 'fail', exitCode: 1 })
    expect(await read(id)).toBeNull()
  })

  it('is replaced by a second one: who, end and comment', async () => {
    const { id } = await takeDown()
    await acknowledge(id, { comment: 'I look at it' })
    const { body } = await acknowledge(id, { for_seconds: 7_200 }, api.keys.write)
    expect(body.acknowledged).toMatchObject({ by: { name: 'write' }, comment: null })
    const { at, until } = body.acknowledged
    expect(Date.parse(until) - Date.parse(at)).toBe(2 * HOUR)
    const acts = api.audited.filter(({ target }) => target?.id === id).map(({ action, detail }) => [action, detail])
    expect(acts.slice(-2)).toEqual([
      ['check.acknowledged', {}],
      ['check.acknowledged', { until }],
    ])
  })

  it('is over at its time', async () => {
    await using later = await startTestApi()
    const { id, public_id } = await later.addCheck()
    await later.ping(public_id, { type: 'fail', exitCode: 1 })
    await later.client.post(`/checks/${id}/acknowledge`, { for_seconds: 300 })
    later.moveClock(299_000)
    expect((await later.client.get(`/checks/${id}`)).body.acknowledged).not.toBeNull()
    later.moveClock(1_000)
    expect((await later.client.get(`/checks/${id}`)).body.acknowledged).toBeNull()
  })

  it('is ended by a call, a second of which changes nothing', async () => {
    const { id } = await takeDown()
    await acknowledge(id)
    const { length } = api.audited
    for (let times = 0; times < 2; times += 1) {
      const { status, body } = await end(id)
      expect([status, body.acknowledged, body.status]).toEqual([200, null, 'down'])
    }
    expect(await read(id)).toBeNull()
    expect(api.audited.slice(length).map(({ action }) => action)).toEqual(['check.unacknowledged'])
  })

  it.each([
    [{ for_seconds: 299 }, 'body.for_seconds'],
    [{ for_seconds: 300 }, null],
    [{ for_seconds: 604_800 }, null],
    [{ for_seconds: 604_801 }, 'body.for_seconds'],
    [{ for_seconds: 300.5 }, 'body.for_seconds'],
    [{ for_seconds: null }, 'body.for_seconds'],
    [{ comment: '' }, null],
    [{ comment: null }, null],
    [{ comment: 'x'.repeat(200) }, null],
    [{ comment: 'x'.repeat(201) }, 'body.comment'],
    [{ until: '2030-01-01T00:00:00Z' }, 'body.until'],
  ])('with %j: the fault is in %s', async (body, path) => {
    const { id } = await takeDown()
    const answer = await acknowledge(id, body)
    if (path === null) expect([answer.status, answer.body.acknowledged]).toEqual([200, expect.objectContaining({})])
    else expect([answer.status, answer.body.details]).toEqual([400, [expect.objectContaining({ path })]])
    expect((await read(id)) === null).toBe(path !== null)
  })

  it('is for a check that is down alone', async () => {
    const { id, public_id } = await api.addCheck()
    const error = 'the check is not down: there is nothing to acknowledge'
    const expectNotDown = async () => {
      for (const { status, body } of [await acknowledge(id), await end(id)])
        expect([status, body]).toEqual([409, { error, code: 'not_down' }])
    }
    await expectNotDown()
    await api.ping(public_id)
    await expectNotDown()
    await api.ping(public_id, { type: 'fail', exitCode: 1 })
    await api.client.patch(`/checks/${id}/pause`)
    await expectNotDown()
  })

  it('needs the scope write, and a check of the caller', async () => {
    const { id } = await takeDown()
    const other = await api.addOrganization()
    for (const [key, status] of [
      [api.keys.read, 403],
      [other.keys.admin, 404],
    ] as const) {
      expect((await acknowledge(id, {}, key)).status).toBe(status)
      expect((await api.client.delete(`/checks/${id}/acknowledge`, { key })).status).toBe(status)
    }
    expect(await read(id)).toBeNull()
  })
})
