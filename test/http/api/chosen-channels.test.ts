import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApi, type TestApi } from '../../support/service.ts'

let api: TestApi
let own: string
let shared: string
let elsewhere: string
let foreign: string
beforeAll(async () => {
  api = await startTestApi()
  const otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
  own = await addChannel({ project_id: api.project })
  shared = await addChannel()
  elsewhere = await addChannel({ project_id: otherProject })
  foreign = await addChannel({}, (await api.addOrganization()).keys.admin)
})
afterAll(() => api.close())

async function addChannel(fields: object = {}, key = api.keys.admin): Promise<string> {
  const channel = { kind: 'slack', name: 'Team', config: { url: 'https://hooks.example.com/x' }, ...fields }
  return (await api.client.post('/channels', channel, { key })).body.id
}
const create = (fields: object = {}, key = api.keys.admin) =>
  api.client.post('/checks', { project_id: api.project, name: 'Backup', ...fields }, { key })

describe('the channels of a check', () => {
  it('are all of its project and of its organization by default: null', async () => {
    const { body } = await create()
    expect(body.channels).toBeNull()
    expect((await create({ channels: null })).body.channels).toBeNull()
  })

  it('can be chosen, in their order, by a caller that may change checks', async () => {
    const { status, body } = await create({ channels: [shared.toUpperCase(), own] }, api.keys.write)
    expect({ status, channels: body.channels }).toEqual({ status: 201, channels: [shared, own] })
    const update = async (fields: object) => (await api.client.put(`/checks/${body.id}`, fields)).body.channels
    expect(await update({ name: 'Other' })).toEqual([shared, own])
    expect(await update({ channels: [] })).toEqual([])
    expect(await update({ channels: [own] })).toEqual([own])
    expect(await update({ channels: null })).toBeNull()
    const { entries } = (await api.client.get(`/audit?target_id=${body.id}`)).body
    expect(entries[0]).toMatchObject({ action: 'check.changed', detail: { changed: ['channels'] } })
  })

  it('are left out when the project that a channel has moved to is removed', async () => {
    const [first, moved] = [await addChannel(), await addChannel()]
    const { id } = (await create({ channels: [shared, moved, first] })).body
    const project = (await api.client.post('/projects', { name: 'Short' })).body.id
    expect((await api.client.put(`/channels/${moved}`, { project_id: project })).status).toBe(200)
    expect((await api.client.delete(`/projects/${project}`)).status).toBe(204)
    expect((await api.client.get(`/checks/${id}`)).body.channels).toEqual([shared, first])
  })

  it('can be a hundred', async () => {
    const { rows } = await api.database.query<{ id: string }>(
      `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
        select gen_random_uuid(), organization_id, kind, name, sealed, sealed_with, event_types, created_at
        from channels, generate_series(1, 101) where id = $1 returning id`,
      [shared],
    )
    const ids = rows.map(({ id }) => id)
    expect((await create({ channels: ids.slice(0, 100) })).status).toBe(201)
    expect(await create({ channels: ids })).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining('channels must be null or a list of at most 100 different ids') },
    })
  })

  it.each([
    ['one twice', () => [own, own.toUpperCase()], 'different ids of channels'],
    ['a text', () => own, 'must be null or a list'],
    ['no id', () => ['pager'], 'channels.0 '],
    ['an unknown one', () => ['01900000-0000-7000-8000-000000000000'], 'is none'],
    ['one of another project', () => [own, elsewhere], 'is none'],
    ['one of another organization', () => [foreign], 'is none'],
  ])('cannot be %s', async (_, channels, error) => {
    const { status, body } = await create({ channels: channels() })
    expect(status).toBe(400)
    expect(body.error).toContain(error)
    const { id } = (await create({ channels: [own] })).body
    expect((await api.client.put(`/checks/${id}`, { channels: channels() })).status).toBe(400)
    expect((await api.client.get(`/checks/${id}`)).body.channels).toEqual([own])
  })
})

describe('resume_on_ping', () => {
  it('is false by default, and changes without moving a deadline', async () => {
    const { body } = await create({ armed: true })
    expect(body.resume_on_ping).toBe(false)
    await api.database.query(`update check_states set due_at = due_at - interval '10 minutes' where due_at is not null`)
    const { due_at } = (await api.client.get(`/checks/${body.id}`)).body
    const changed = (await api.client.put(`/checks/${body.id}`, { resume_on_ping: true })).body
    expect(changed).toMatchObject({ resume_on_ping: true, due_at })
    expect((await api.client.put(`/checks/${body.id}`, { name: 'Other' })).body.resume_on_ping).toBe(true)
    expect((await create({ resume_on_ping: true })).body.resume_on_ping).toBe(true)
  })

  it.each([[null], ['true'], [1]])('cannot be %j', async (given) => {
    expect(await create({ resume_on_ping: given })).toMatchObject({ status: 400 })
  })
})
