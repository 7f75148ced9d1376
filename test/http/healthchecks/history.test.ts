import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { uniqueKeyOf } from '../../../src/http/healthchecks/unique-key.ts'
import { evaluate } from '../../support/evaluate.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { addProject, callerOf, type Project } from './support.ts'

const RUN = '123e4567-e89b-42d3-a456-426614174000'

let project: Project
let uuid: string
let site: string

const api = use(startTestApi)
const call = callerOf(api, () => project.keys.write)
beforeAll(async () => {
  project = await addProject(api)
  site = api.url.replace('/api/v1', '')
})
beforeEach(async () => {
  uuid = (await call('POST', 'v3/checks/', { json: {} })).body.uuid
})

describe('pings', () => {
  it('are numbered from 1, newest first', async () => {
    await api.ping(uuid, { type: 'start', runId: RUN, exitCode: null })
    await api.ping(uuid, { type: 'success', runId: RUN, durationMs: 2_896, body: Buffer.from('ünf') } as never)
    await api.ping(uuid, { type: 'fail', exitCode: 3 })
    const { pings } = (await call('GET', `v2/checks/${uuid}/pings/`)).body
    const rest = { scheme: '', remote_addr: '', method: '', ua: '' }
    const date = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?\+00:00$/)
    expect(pings).toEqual([
      { type: 'fail', date, n: 3, ...rest, rid: null, body_url: null },
      {
        type: 'success',
        date,
        n: 2,
        ...rest,
        rid: RUN,
        duration: 2.9,
        body_url: `${site}/api/v2/checks/${uuid}/pings/2/body`,
      },
      { type: 'start', date, n: 1, ...rest, rid: RUN, body_url: null },
    ])
    const text = await call('GET', `v3/checks/${uuid}/pings/2/body`)
    expect([text.status, text.body, text.headers.get('content-type')]).toEqual([
      200,
      'ünf',
      'text/plain; charset=utf-8',
    ])
    for (const n of [0, 1, 3, 4, 999_999_999_999_999])
      expect((await call('GET', `v3/checks/${uuid}/pings/${n}/body`)).status).toBe(404)
  })

  it('of a warning are successes, and the check is up', async () => {
    await api.ping(uuid, { type: 'warn', exitCode: null })
    expect((await call('GET', `v3/checks/${uuid}/pings/`)).body.pings).toMatchObject([{ type: 'success', n: 1 }])
    expect((await call('GET', `v3/checks/${uuid}`)).body).toMatchObject({ status: 'up', started: false, n_pings: 1 })
  })

  it('keep their numbers when old ones are deleted, and the newest 1,000 are listed', async () => {
    await api.ping(uuid)
    await api.database.query(
      `insert into pings (check_key, id, type, created_at, source)
        select key, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 0, now(), 0
        from checks, generate_series(1, 1100) n where public_id = $1`,
      [uuid],
    )
    await api.database.query(
      'update check_states set pings_total = 5000 where check_key = (select key from checks where public_id = $1)',
      [uuid],
    )
    const { pings } = (await call('GET', `v3/checks/${uuid}/pings/`)).body
    expect([pings.length, pings[0].n, pings.at(-1).n]).toEqual([1_000, 5_000, 4_001])
  })
})

describe('flips', () => {
  it('are changes of status only, newest first, within a range', async () => {
    const flips = async (query = '', id = uuid) => (await call('GET', `v1/checks/${id}/flips/${query}`)).body.flips
    expect(await flips()).toEqual([])
    await api.ping(uuid)
    api.moveClock(10_000)
    await api.ping(uuid, { type: 'fail' })
    const [down, up] = await flips()
    expect([down.up, up.up]).toEqual([0, 1])
    expect(down.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/)
    expect(await flips('', uniqueKeyOf(uuid))).toEqual([down, up])
    const at = Date.parse(down.timestamp) / 1_000
    expect(await flips(`?start=${at}`)).toEqual([down])
    expect(await flips(`?end=${at}`)).toEqual([up])
    expect(await flips(`?start=${at}&end=${at}`)).toEqual([])
    expect(await flips('?seconds=5')).toEqual([down])
    expect(await flips('?seconds=0')).toEqual([down, up])
    expect(await flips('?seconds=31536000')).toEqual([down, up])
  })

  it('have no miss that was only counted', async () => {
    const { id, public_id } = await api.addCheck({
      project_id: project.id,
      period_seconds: 60,
      grace_seconds: 0,
      misses_before_down: 2,
    })
    await api.ping(public_id)
    api.moveClock(61_000)
    await evaluate(api, id)
    expect((await api.client.get(`/checks/${id}/flips`)).body.flips).toHaveLength(3)
    expect((await call('GET', `v3/checks/${public_id}/flips/`)).body.flips).toMatchObject([{ up: 1 }])
  })

  it('have no step between a pause and the completion that ends it', async () => {
    const flips = async () =>
      (await call('GET', `v3/checks/${uuid}/flips/`)).body.flips.map(({ up }: { up: number }) => up)
    const pause = () => call('POST', `v3/checks/${uuid}/pause`)
    await api.ping(uuid)
    await pause()
    await api.ping(uuid, { type: 'fail' })
    expect(await flips()).toEqual([0, 0, 1])
    await pause()
    await api.ping(uuid)
    expect(await flips()).toEqual([1, 0, 0, 0, 1])
    await pause()
    await call('POST', `v3/checks/${uuid}/resume`)
    api.moveClock(1_000)
    await api.ping(uuid)
    expect(await flips()).toEqual([1, 0, 0, 1, 0, 0, 0, 1])
  })

  it.each([
    'start=a',
    'start=',
    'start=-1',
    'end=10000000001',
    'seconds=a',
    'seconds=-1',
    'seconds=31536001',
    'end=1.5',
  ])('rejects %s', async (query) => {
    expect((await call('GET', `v3/checks/${uuid}/flips/?${query}`)).status).toBe(400)
  })
})
