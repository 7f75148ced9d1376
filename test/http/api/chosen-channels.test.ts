import { beforeAll, describe, expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let own: string
let shared: string
let elsewhere: string
let foreign: string
const api = use(startTestApi)
beforeAll(async () => {
  const otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
  own = await addChannel({ project_id: api.project })
  shared = await addChannel()
  elsewhere = await addChannel({ project_id: otherProject })
  foreign = await addChannel({}, (await api.addOrganization()).keys.admin)
})

const addChannel = async (fields?: object, key?: string): Promise<string> => (await api.addChannel(fields, key)).id
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

  it('can be a hundred', async () => {
    const ids = await api.copyChannel(shared, 101)
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

describe('a channel that checks chose', () => {
  // There is no room beside those of the tests before.
  beforeAll(() =>
    api.database.query('delete from channels where id <> all($1::uuid[])', [[own, shared, elsewhere, foreign]]),
  )
  const named = async (channels: string[], ...names: string[]) => {
    for (const name of names) await create({ name, channels })
  }
  const move = (channel: string, project_id: string | null) => api.client.put(`/channels/${channel}`, { project_id })

  it('does not move to a project while checks elsewhere have chosen it', async () => {
    const [moving, project] = [await addChannel(), (await api.client.post('/projects', { name: 'Next' })).body.id]
    await named([moving], 'Delta', 'Bravo')
    await named([moving, shared], 'Alpha', 'Charlie')
    const { status, body } = await move(moving, project)
    expect(status).toBe(409)
    expect(body).toMatchObject({ code: 'channel_in_use', details: [{ path: 'body.project_id' }] })
    expect(body.error).toContain('("Alpha", "Bravo", "Charlie" and 1 more)')
    expect((await api.client.get(`/channels/${moving}`)).body.project_id).toBeNull()

    // Its checks are all of the project that it moves to.
    expect((await move(moving, api.project)).status).toBe(200)
    expect((await move(moving, api.project)).status).toBe(200)
    expect((await move(moving, project)).body.code).toBe('channel_in_use')
    // All can choose it there, also those of other projects.
    expect((await move(moving, null)).status).toBe(200)
  })

  it('moves when nobody elsewhere has chosen it, and then its project can be removed', async () => {
    const [moving, project] = [await addChannel(), (await api.client.post('/projects', { name: 'Next' })).body.id]
    await create({ channels: null })
    expect((await move(moving, project)).status).toBe(200)
    expect((await api.client.delete(`/projects/${project}`)).status).toBe(204)
  })

  it('is removed by force alone where it is the only one that some chose', async () => {
    const only = await addChannel()
    await named([only], 'First', 'Second')
    const { id } = (await create({ channels: [only, shared] })).body
    for (const query of ['', '?force=false'])
      expect(await api.client.delete(`/channels/${only}${query}`)).toMatchObject({
        status: 409,
        body: { code: 'channel_in_use', error: expect.stringMatching(/^2 checks notify .*force=true/) },
      })
    expect((await api.client.get(`/checks/${id}`)).body.channels).toEqual([only, shared])
    expect((await api.client.delete(`/channels/${only}?force=true`)).status).toBe(204)
    expect((await api.client.get(`/checks/${id}`)).body.channels).toEqual([shared])
  })

  it.each([
    ['force=yes', 'force must be one of true, false'],
    ['force=', 'force must be one of true, false'],
    ['force=true&force=true', 'force is given more than once'],
    ['forced=true', 'the parameters of this call are force'],
  ])('is not removed with ?%s', async (query, error) => {
    const channel = await addChannel()
    expect(await api.client.delete(`/channels/${channel}?${query}`)).toMatchObject({
      status: 400,
      body: { error: expect.stringContaining(error) },
    })
    expect((await api.client.get(`/channels/${channel}`)).status).toBe(200)
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
