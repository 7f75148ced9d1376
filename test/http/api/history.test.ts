import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestApi, type TestApi } from '../../support/service.ts'

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const RUN = '0199aaaa-0000-7000-8000-00000000000a'

let api: TestApi
let id: string
let publicId: string

beforeAll(async () => {
  api = await startTestApi()
})
afterAll(() => api.close())
beforeEach(async () => {
  const { body } = await api.client.post('/checks', { project_id: api.project, name: 'job' })
  id = body.id
  publicId = body.public_id
})

const pings = async (query = '') => (await api.client.get(`/checks/${id}/pings${query}`)).body
const flips = async (query = '') => (await api.client.get(`/checks/${id}/flips${query}`)).body

describe('the pings of a check', () => {
  it('are none before the first', async () => {
    expect(await pings()).toEqual({ pings: [] })
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
      source: 'http',
    }
    expect(await pings()).toEqual({
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
    expect(await pings(`?cursor=${first.next_cursor}`)).toEqual({ pings: all.slice(100) })
    expect((await pings('?limit=1')).pings).toEqual(all.slice(0, 1))
    expect((await pings('?limit=100000')).pings).toEqual(all)
  })

  it.each(['limit=0', 'limit=-1', 'limit=x', 'limit=1.0', 'cursor=x', 'limit=1&limit=1'])(
    'are refused for ?%s',
    async (query) => {
      const { status, body } = await api.client.get(`/checks/${id}/pings?${query}`)
      expect(status).toBe(400)
      expect(body.details).toMatchObject([{ path: `query.${query.split('=')[0]}` }])
    },
  )
})

describe('the flips of a check', () => {
  it('come newest first, with what caused them', async () => {
    await api.ping(publicId)
    await api.ping(publicId, { type: 'fail', exitCode: 1 })
    await api.client.patch(`/checks/${id}/pause`)
    const [failed, succeeded] = (await pings()).pings
    const common = { id: expect.stringMatching(UUID_V7), at: expect.stringMatching(ISO) }
    expect(await flips()).toEqual({
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
    expect(await flips(`?limit=1&cursor=${first.next_cursor}`)).toEqual({ flips: [all[1]] })
  })

  it('are refused for a limit of nothing', async () => {
    expect((await api.client.get(`/checks/${id}/flips?limit=0`)).status).toBe(400)
  })
})
