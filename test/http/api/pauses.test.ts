/** Pausing and resuming over the API (design, section 3.2). */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { SECOND } from '../../support/builders.ts'
import { evaluate } from '../../support/evaluate.ts'
import { ISO } from '../../support/patterns.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const YEAR = 31_536_000

const api = use(startTestApi)
let id: string
let publicId: string
beforeEach(async () => {
  ;({ id, public_id: publicId } = await api.addCheck({ period_seconds: 60, grace_seconds: 30 }))
})
afterEach(() => vi.restoreAllMocks())

/** The service's clock stands still. */
function stopClock(): number {
  const now = Math.floor(api.context.clock.now())
  vi.spyOn(api.context.clock, 'now').mockReturnValue(now)
  return now
}

const read = async () => (await api.client.get(`/checks/${id}`)).body
const newestEntry = async () => (await api.client.get(`/audit?limit=1&target_id=${id}`)).body.entries[0]
const idOfKey = async (name: string) =>
  (await api.client.get('/api-keys')).body.api_keys.find((key: { name: string }) => key.name === name).id

describe.each(['POST', 'PATCH'])('by %s', (method) => {
  const act = (name: string, options = {}) => api.client.call(method, `/checks/${id}/${name}`, options)
  const pause = (json: object) => act('pause', { json })

  it('a pause and a resume answer with the full check, as often as they are called', async () => {
    await api.ping(publicId)
    // An empty body of any type is none.
    for (const options of [{}, { json: {} }, { body: '', headers: { 'content-type': 'text/plain' } }]) {
      const { status, body } = await act('pause', options)
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { id, status: 'paused', expected_at: null, due_at: null, pause: { until: null, comment: null } },
      })
    }
    expect(await act('resume', { key: api.keys.read })).toMatchObject({ status: 403 })
    // A body of a resume is ignored.
    for (const options of [{}, { body: 'x', headers: { 'content-type': 'text/plain' } }]) {
      const { status, body } = await act('resume', options)
      expect({ status, body }).toMatchObject({
        status: 200,
        body: { id, status: 'new', status_reason: 'resumed', due_at: expect.stringMatching(ISO), pause: null },
      })
    }
  })

  it('a pause says by whom, since when, until when and why', async () => {
    const now = stopClock()
    const until = new Date(now + 60 * SECOND).toISOString()
    const { body } = await act('pause', { json: { until, comment: 'New disks' }, key: api.keys.write })
    const by = { kind: 'api_key', id: await idOfKey('write'), name: 'write' }
    expect(body.pause).toEqual({ by, at: body.status_since, until, comment: 'New disks' })
    expect(await read()).toEqual({ ...body, pause: body.pause })
    const { checks } = (await api.client.get(`/checks?project_id=${api.project}&status=paused`)).body
    expect(checks.find((check: { id: string }) => check.id === id).pause).toEqual(body.pause)
    expect(await newestEntry()).toMatchObject({ action: 'check.paused', detail: { until } })
  })

  it.each([10, YEAR])('takes %s seconds', async (for_seconds) => {
    const now = stopClock()
    const { status, body } = await pause({ for_seconds })
    expect([status, body.pause.until]).toEqual([200, new Date(now + for_seconds * SECOND).toISOString()])
  })

  it.each([1, YEAR * SECOND])('takes an end %s ms from now', async (ms) => {
    const until = new Date(stopClock() + ms).toISOString()
    const { status, body } = await pause({ until: until.replace('Z', '+00:00') })
    expect([status, body.pause.until]).toEqual([200, until])
  })

  it.each([-1, 0, YEAR * SECOND + 1])('refuses an end %s ms from now', async (ms) => {
    const { status, body } = await pause({ until: new Date(stopClock() + ms).toISOString() })
    const message = `must be a time within ${YEAR} seconds from now`
    expect([status, body.details]).toEqual([400, [{ path: 'body.until', message }]])
    expect(await read()).toMatchObject({ status: 'new', pause: null })
  })

  it.each<[object, string]>([
    [{ for_seconds: 9 }, `for_seconds must be an integer from 10 to ${YEAR}`],
    [{ for_seconds: YEAR + 1 }, `for_seconds must be an integer from 10 to ${YEAR}`],
    [{ for_seconds: null }, 'for_seconds cannot be null'],
    [{ until: null }, 'until cannot be null'],
    [{ until: 1 }, 'until must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z'],
    [{ until: '2030-01-31T12:00:00Z', for_seconds: 60 }, 'until cannot be given beside for_seconds'],
    [{ comment: 'x'.repeat(201) }, 'comment must be text of at most 200 characters, without control characters'],
    [{ for: 60 }, 'for is not a known field; the nearest known one is for_seconds'],
  ])('refuses %j, and pauses nothing', async (json, error) => {
    const { status, body } = await pause(json)
    expect([status, body.error]).toEqual([400, error])
    expect(await read()).toMatchObject({ status: 'new', pause: null })
  })

  it('takes a comment of 200 characters, and none', async () => {
    for (const comment of ['💾'.repeat(200), null])
      expect((await pause({ comment })).body.pause).toMatchObject({ comment })
  })

  it('a second pause replaces the first, with whom and when; nothing else changes', async () => {
    const first = await act('pause', { json: { for_seconds: 60, comment: 'a' }, key: api.keys.write })
    const { body } = await pause({ for_seconds: 3_600 })
    const { pause: _first, ...others } = first.body
    expect(body).toEqual({
      ...others,
      pause: { ...body.pause, by: { ...body.pause.by, name: 'admin' }, comment: null },
    })
    expect(Date.parse(body.pause.until)).toBeGreaterThan(Date.parse(first.body.pause.until))
    expect((await pause({})).body.pause).toMatchObject({ until: null })
    const { flips } = (await api.client.get(`/checks/${id}/flips`)).body
    expect(flips.map(({ reason }: { reason: string }) => reason)).toEqual(['paused', 'created'])
    const { entries } = (await api.client.get(`/audit?target_id=${id}&action=check.paused`)).body
    expect(entries.map(({ detail }: { detail: object }) => Object.keys(detail))).toEqual([[], ['until'], ['until']])
  })
})

it('at its end the check resumes by itself, and an earlier call ends the pause', async () => {
  const { body } = await api.client.post(`/checks/${id}/pause`, { for_seconds: 60 })
  await evaluate(api, id)
  expect(await read()).toEqual(body)
  await api.client.post(`/checks/${id}/resume`)
  api.moveClock(61 * SECOND)
  await evaluate(api, id)
  expect(await read()).toMatchObject({ status: 'new', status_reason: 'resumed', pause: null })
  const { until } = (await api.client.post(`/checks/${id}/pause`, { for_seconds: 60 })).body.pause
  api.moveClock(61 * SECOND)
  await evaluate(api, id)
  expect(await read()).toMatchObject({ status: 'new', status_reason: 'resumed', status_since: until, pause: null })
})
