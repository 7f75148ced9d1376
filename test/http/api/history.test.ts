import { beforeEach, describe, expect, it } from 'vitest'
import { ISO } from '../../support/patterns.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const RUN = '0199aaaa-0000-7000-8000-00000000000a'

let id: string
let publicId: string

const api = use(startTestApi)
beforeEach(async () => {
  ;({ id, public_id: publicId } = await api.addCheck({ name: 'job' }))
})

const pings = async (query = '') => (await api.client.get(`/checks/${id}/pings${query}`)).body
const flips = async (query = '') => (await api.client.get(`/checks/${id}/flips${query}`)).body

describe('the pings of a check', () => {
  it('are none before the first', async () => {
    expect(await pings()).toEqual({ pings: [], next_cursor: null })
  })

  it('come newest first, with all that they carried', async () => {
    await api.ping(publicId, { type: 'start', exitCode: null, runId: RUN })
    await api.ping(publicId, {
      type: 'fail',
      exitCode: 3,
      durationMs: 1_500,
      runId: RUN,
      body: Buffer.from('Größe: \0', 'utf8'),
    })
    await api.ping(publicId, { body: Buffer.from([0x61, 0xff, 0x62]) })
    await api.ping(publicId, { type: 'fail', exitCode: null })
    await api.ping(publicId, { type: 'log', exitCode: null })
    const common = {
      id: expect.stringMatching(UUID_V7),
      created_at: expect.stringMatching(ISO),
      duration_ms: null,
      run_id: null,
      body: null,
      body_truncated: false,
      source: 'http',
    }
    expect(await pings()).toEqual({
      next_cursor: null,
      pings: [
        { ...common, type: 'log', exit_code: null },
        { ...common, type: 'fail', exit_code: null },
        { ...common, type: 'success', exit_code: 0, body: 'a\ufffdb' },
        { ...common, type: 'fail', exit_code: 3, duration_ms: 1_500, run_id: RUN, body: 'Größe: \0' },
        { ...common, type: 'start', exit_code: null, run_id: RUN },
      ],
    })
  })

  it('are given a hundred at a time unless asked otherwise, and go on by cursor', async () => {
    await Promise.all(Array.from({ length: 105 }, () => api.ping(publicId)))
    const all = (await pings('?limit=1000')).pings
    expect(all).toHaveLength(105)
    const first = await pings()
    expect(first.pings).toEqual(all.slice(0, 100))
    expect(await pings(`?cursor=${first.next_cursor}`)).toEqual({ pings: all.slice(100), next_cursor: null })
    expect((await pings('?limit=1')).pings).toEqual(all.slice(0, 1))
    expect((await pings('?limit=100000')).pings).toEqual(all)
  })
})

describe('the filters of a history', () => {
  const moments = async () => {
    const later = async (ping: Parameters<typeof api.ping>[1]) => {
      api.moveClock(1_000)
      await api.ping(publicId, ping)
    }
    await later({ body: Buffer.from('ü'.repeat(250)) })
    await later({ type: 'fail', exitCode: 1, body: Buffer.from('💾'.repeat(201)) })
    await later({ type: 'log', exitCode: null, body: Buffer.from('short') })
    return (await pings()).pings as { id: string; created_at: string; body: string | null }[]
  }

  it('type, since (inclusive) and until (exclusive) narrow the pings', async () => {
    const [log, fail, success] = await moments()
    expect((await pings('?type=fail')).pings).toEqual([fail])
    expect((await pings(`?since=${fail!.created_at}`)).pings).toEqual([log, fail])
    expect((await pings(`?until=${fail!.created_at}`)).pings).toEqual([success])
    expect((await pings(`?since=${fail!.created_at}&until=${log!.created_at}&type=fail`)).pings).toEqual([fail])
    const first = await pings(`?limit=1&until=${log!.created_at}`)
    expect(first.pings).toEqual([fail])
    expect(await pings(`?until=${log!.created_at}&cursor=${first.next_cursor}`)).toEqual({
      pings: [success],
      next_cursor: null,
    })
  })

  it('body: none has no texts, cut the first 200 characters, full all of them', async () => {
    const full = await moments()
    const bodies = async (form: string) =>
      (await pings(`?body=${form}`)).pings.map(({ body }: { body: string }) => body)
    expect(await bodies('full')).toEqual(full.map(({ body }) => body))
    expect(await bodies('cut')).toEqual(['short', '💾'.repeat(200), 'ü'.repeat(200)])
    expect(await bodies('none')).toEqual([null, null, null])
  })

  it('since and until narrow the flips', async () => {
    await moments()
    const all = (await flips()).flips as { at: string; reason: string }[]
    expect(all.map(({ reason }) => reason)).toEqual(['failed', 'first_success', 'created'])
    expect((await flips(`?since=${all[0]!.at}`)).flips).toEqual([all[0]])
    expect((await flips(`?until=${all[0]!.at}`)).flips).toEqual(all.slice(1))
  })

  it.each([
    ['pings', 'type=exit', 'type must be one of success, start, fail, log, warn'],
    ['pings', 'body=half', 'body must be one of none, cut, full'],
    ['pings', 'since=yesterday', 'since must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z'],
    ['flips', 'until=1', 'until must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z'],
  ])('of %s are rejected for ?%s', async (list, query, error) => {
    const { status, body } = await api.client.get(`/checks/${id}/${list}?${query}`)
    expect([status, body.error]).toEqual([400, error])
  })
})

describe('one ping', () => {
  it('has all that it carried, and its text alone with the bytes that were sent', async () => {
    const bytes = Buffer.from([0xe4, 0x00, 0x1b, 0x0a])
    await api.ping(publicId, { body: bytes })
    const [ping] = (await pings()).pings
    expect((await api.client.get(`/checks/${id}/pings/${ping.id}`)).body).toEqual(ping)
    const response = await fetch(`${api.url}/checks/${id}/pings/${ping.id}/body`, {
      headers: { authorization: `Bearer ${api.keys.read}` },
    })
    expect(Buffer.from(await response.arrayBuffer())).toEqual(bytes)
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/)
    expect(response.headers.get('x-content-type-options')).toBe('nosniff')
  })

  it('without a text has none: 204', async () => {
    await api.ping(publicId)
    const [ping] = (await pings()).pings
    const { status, body, headers } = await api.client.get(`/checks/${id}/pings/${ping.id}/body`)
    expect([status, body, headers.get('content-type')]).toEqual([204, null, null])
  })

  it.each(['', '/body'])('that is unknown, or of another check, is 404 (%s)', async (rest) => {
    await api.ping(publicId)
    const [ping] = (await pings()).pings
    const other = await api.addCheck({ name: 'other' })
    for (const path of [`${id}/pings/${RUN}`, `${id}/pings/1`, `${other.id}/pings/${ping.id}`]) {
      const { status, body } = await api.client.get(`/checks/${path}${rest}`)
      expect([path, status, body]).toEqual([path, 404, { error: 'ping not found', code: 'not_found' }])
    }
    expect((await api.client.get(`/checks/1/pings/${ping.id}${rest}`)).body).toEqual({
      error: 'check not found',
      code: 'not_found',
    })
  })
})

describe('a history that is larger than 1 MB', () => {
  it('has pages of about 1 MB, which together are complete, control characters and all', async () => {
    await api.database.query(
      `with pinged as (
          insert into pings (id, check_key, type, source, created_at)
          select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, key, 3, 0, now()
          from checks, generate_series(1, 200) n where checks.id = $1
          returning id, check_key)
        insert into ping_bodies (check_key, ping_id, body) select check_key, id, decode(repeat('01', 10240), 'hex') from pinged`,
      [id],
    )
    const read = async (query: string) => {
      const headers = { authorization: `Bearer ${api.keys.read}` }
      const response = await fetch(`${api.url}/checks/${id}/pings?limit=1000${query}`, { headers })
      const text = await response.text()
      expect(response.headers.get('content-length')).toBe(`${text.length}`)
      return { text, ...(JSON.parse(text) as { pings: { id: string; body: string }[]; next_cursor: string | null }) }
    }
    const all: { id: string; body: string }[] = []
    let page = await read('')
    for (; ; page = await read(`&cursor=${page.next_cursor}`)) {
      expect(page.text.length).toBeLessThan(1_100_000)
      all.push(...page.pings)
      if (page.next_cursor === null) break
      expect(page.text.length).toBeGreaterThan(838_861)
      // A ping that comes between two pages shifts nothing.
      await api.ping(publicId)
    }
    expect(new Set(all.map(({ id }) => id)).size).toBe(200)
    expect(all.every(({ body }) => body === '\u0001'.repeat(10_240))).toBe(true)
  })
})

describe('unknown query parameters', () => {
  it('of a list are rejected by name, with the known ones', async () => {
    const { status, body } = await api.client.get(`/checks/${id}/pings?limit=1&tpye=fail`)
    const message = 'is not a known parameter: the parameters of this list are type, since, until, body, limit, cursor'
    const details = [{ path: 'query.tpye', message }]
    expect([status, body]).toEqual([400, { error: `tpye ${message}`, code: 'invalid_request', details }])
    for (const list of ['projects', 'channels', 'deliveries', 'api-keys', 'users', `checks/${id}/flips`])
      expect([list, (await api.client.get(`/${list}?page=2`)).status]).toEqual([list, 400])
    expect((await api.client.get(`/checks?project_id=${api.project}&staus=down`)).status).toBe(400)
  })

  it('of other operations are ignored', async () => {
    for (const path of [`/checks/${id}`, '/me', '/openapi.json'])
      expect([path, (await api.client.get(`${path}?page=2`)).status]).toEqual([path, 200])
    expect((await api.client.patch(`/checks/${id}/pause?force=1`)).status).toBe(200)
  })
})

describe('the flips of a check', () => {
  it('come newest first, with what caused them', async () => {
    await api.ping(publicId)
    await api.ping(publicId, { type: 'fail', exitCode: 1 })
    await api.client.patch(`/checks/${id}/pause`)
    const [failed, succeeded] = (await pings()).pings
    const common = { id: expect.stringMatching(UUID_V7), at: expect.stringMatching(ISO), detail: null }
    expect(await flips()).toEqual({
      next_cursor: null,
      flips: [
        { ...common, from: 'down', to: 'paused', reason: 'paused', ping_id: null },
        { ...common, from: 'up', to: 'down', reason: 'failed', ping_id: failed.id },
        { ...common, from: 'new', to: 'up', reason: 'first_success', ping_id: succeeded.id },
        { ...common, from: null, to: 'new', reason: 'created', ping_id: null },
      ],
    })
  })

  it('go on by cursor', async () => {
    await api.ping(publicId)
    const all = (await flips()).flips
    const first = await flips('?limit=1')
    expect(first.flips).toEqual([all[0]])
    expect(await flips(`?limit=1&cursor=${first.next_cursor}`)).toEqual({ flips: [all[1]], next_cursor: null })
  })
})
