/** `depends_on` of a check over the API: what it takes, what it refuses, and what a removal leaves of it. */

import { beforeAll, describe, expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let database: string
let network: string
let elsewhere: string
let foreign: string
const api = use(startTestApi)
beforeAll(async () => {
  database = (await create({ name: 'Database' })).body.id
  network = (await create({ name: 'Network' })).body.id
  const other = (await api.client.post('/projects', { name: 'Other' })).body.id
  elsewhere = (await create({ name: 'Elsewhere', project_id: other })).body.id
  const { keys, project } = await api.addOrganization()
  foreign = (await api.client.post('/checks', { project_id: project, name: 'x' }, { key: keys.admin })).body.id
})

const UNKNOWN = '01900000-0000-7000-8000-000000000000'
const create = (fields: object = {}) =>
  api.client.post('/checks', { project_id: api.project, name: 'Backup', ...fields })
const update = (id: string, depends_on: unknown) => api.client.patch(`/checks/${id}`, { depends_on })
const dependenciesOf = async (id: string) => (await api.client.get(`/checks/${id}`)).body.depends_on

describe('the checks that a check depends on', () => {
  it('are none by default, and are kept in their order, with an entry in the audit log', async () => {
    expect((await create()).body.depends_on).toEqual([])
    const { status, body } = await create({ depends_on: [network.toUpperCase(), database, elsewhere] })
    expect([status, body.depends_on]).toEqual([201, [network, database, elsewhere]])
    expect((await api.client.patch(`/checks/${body.id}`, { name: 'Other' })).body.depends_on).toHaveLength(3)
    expect((await update(body.id, [database])).body.depends_on).toEqual([database])
    expect((await update(body.id, [])).body.depends_on).toEqual([])
    const { entries } = (await api.client.get(`/audit?target_id=${body.id}`)).body
    expect(entries[0]).toMatchObject({ action: 'check.changed', detail: { changed: ['depends_on'] } })
  })

  it('can be twenty', async () => {
    const ids: string[] = []
    for (let count = 0; count < 21; count += 1) ids.push((await create()).body.id)
    expect((await create({ depends_on: ids.slice(0, 20) })).body.depends_on).toHaveLength(20)
    expect((await create({ depends_on: ids })).body.error).toBe(
      'depends_on must be a list of at most 20 different ids of checks',
    )
  })

  it.each<[string, () => unknown, number, string]>([
    ['null', () => null, 400, 'depends_on cannot be null'],
    ['one twice', () => [network, network.toUpperCase()], 400, 'different ids of checks'],
    ['no id', () => ['backup'], 400, 'depends_on.0 '],
    ['an unknown one', () => [network, UNKNOWN], 404, `check ${UNKNOWN} not found`],
    ['one of another organization', () => [foreign], 404, 'not found'],
  ])('cannot be %s', async (_, given, status, error) => {
    const { id } = (await create({ depends_on: [database] })).body
    for (const refused of [await create({ depends_on: given() }), await update(id, given())])
      expect(refused).toMatchObject({ status, body: { error: expect.stringContaining(error) } })
    expect(await dependenciesOf(id)).toEqual([database])
  })

  it('are of the project for a key of a project, which keeps the others', async () => {
    const { id } = (await create({ depends_on: [elsewhere] })).body
    const { key } = (await api.client.post('/api-keys', { name: 'x', scope: 'write', project_id: api.project })).body
    const give = async (depends_on: string[], of = id) =>
      (await api.client.patch(`/checks/${of}`, { depends_on }, { key })).status
    expect(await give([elsewhere, database])).toBe(200)
    expect(await give([elsewhere], (await create()).body.id)).toBe(404)
  })
})

describe('a ring', () => {
  it('is refused with the names of its checks', async () => {
    const [a, b, c] = await Promise.all(['A', 'B', 'C'].map(async (name) => (await create({ name })).body.id))
    const refused = async (id: string, ids: string[]) => {
      const { status, body } = await update(id, ids)
      return [status, body.error]
    }
    expect(await refused(a, [a])).toEqual([400, 'depends_on must make no ring: A -> A'])
    await update(b, [network, c])
    await update(c, [database, a])
    expect(await refused(a, [b])).toEqual([400, 'depends_on must make no ring: A -> B -> C -> A'])
    expect(await dependenciesOf(a)).toEqual([])
    await update(c, [database])
    expect((await update(a, [b])).status).toBe(200)
  })

  it('has no names of another project for a key of a project', async () => {
    const { id } = (await create({ name: 'Own' })).body
    const between = (await create({ name: 'Between', depends_on: [elsewhere] })).body.id
    await update(elsewhere, [id])
    const { key } = (await api.client.post('/api-keys', { name: 'x', scope: 'write', project_id: api.project })).body
    const { body } = await api.client.patch(`/checks/${id}`, { depends_on: [between] }, { key })
    expect(body.error).toBe('depends_on must make no ring: Own -> Between -> a check of another project -> Own')
  })
})

describe('a check that is removed', () => {
  it('leaves the lists of others', async () => {
    const gone = (await create()).body.id
    const [both, alone] = [
      (await create({ depends_on: [network, gone, database] })).body.id,
      (await create({ depends_on: [gone] })).body.id,
    ]
    expect((await api.client.delete(`/checks/${gone}`)).status).toBe(204)
    expect(await dependenciesOf(both)).toEqual([network, database])
    expect(await dependenciesOf(alone)).toEqual([])
  })
})
