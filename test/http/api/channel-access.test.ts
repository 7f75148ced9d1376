import { beforeAll, describe, expect, it } from 'vitest'
import { INSTALLATION_CHANNEL_ID } from '../../../src/domain/channel.ts'
import { STANDARD_EVENT_TYPES } from '../../../src/domain/event.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

/** Bound to the project of the organization. */
let boundKey: string
let otherProject: string

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
beforeAll(async () => {
  boundKey = (await api.client.post('/api-keys', { name: 'bound', scope: 'admin', project_id: api.project })).body.key
  otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
})

const aWebhook = { kind: 'webhook', name: 'Pager', config: { url: 'https://example.com/hook' } }
const make = (fields?: object, key?: string) => api.addChannel(fields, key)
const get = async (id: string) => (await api.client.get(`/channels/${id}`)).body

describe('a channel', () => {
  const callsOf = (id: string, key: string) => [
    api.client.get(`/channels/${id}`, { key }),
    api.client.put(`/channels/${id}`, { name: 'theirs' }, { key }),
    api.client.delete(`/channels/${id}`, { key }),
    api.client.post(`/channels/${id}/test`, undefined, { key }),
    api.client.post(`/channels/${id}/rotate-secret`, undefined, { key }),
  ]
  const idsOf = async (key: string) =>
    (await api.client.get('/channels', { key })).body.channels.map(({ id }: { id: string }) => id)

  it('is unknown to another organization', async () => {
    const { secret: _, ...made } = await make()
    for (const call of callsOf(made.id, foreign.keys.admin))
      expect(await call).toMatchObject({ status: 404, body: { error: 'channel not found' } })
    expect(await idsOf(foreign.keys.admin)).toEqual([])
    expect(await get(made.id)).toEqual(made)
    const intoTheirs = await api.client.post('/channels', { ...aWebhook, project_id: foreign.project })
    expect(intoTheirs).toMatchObject({ status: 404, body: { error: 'project not found' } })
    const moved = await api.client.put(`/channels/${made.id}`, { project_id: foreign.project })
    expect(moved).toMatchObject({ status: 404, body: { error: 'project not found' } })
  })

  it('is visible to a bound key only in its project', async () => {
    const ours = await make({}, boundKey)
    expect(ours).toMatchObject({ project_id: api.project })
    expect(await make({ project_id: null }, boundKey)).toMatchObject({ project_id: api.project })
    const wide = await make()
    const elsewhere = await make({ project_id: otherProject })
    for (const { id } of [wide, elsewhere])
      for (const call of callsOf(id, boundKey))
        expect(await call).toMatchObject({ status: 404, body: { error: 'channel not found' } })
    const ids = await idsOf(boundKey)
    expect(ids).toContain(ours.id)
    expect(ids).not.toContain(wide.id)
    expect(ids).not.toContain(elsewhere.id)
    expect(await idsOf(api.keys.read)).toEqual(expect.arrayContaining([ours.id, wide.id, elsewhere.id]))

    const options = { key: boundKey }
    expect(await api.client.post('/channels', { ...aWebhook, project_id: otherProject }, options)).toMatchObject({
      status: 404,
      body: { error: 'project not found' },
    })
    expect((await api.client.put(`/channels/${ours.id}`, { project_id: otherProject }, options)).status).toBe(404)
    expect((await api.client.put(`/channels/${ours.id}`, { project_id: null }, options)).status).toBe(403)
    expect((await api.client.put(`/channels/${ours.id}`, { project_id: api.project }, options)).status).toBe(200)
    expect(await get(ours.id)).toMatchObject({ project_id: api.project })
  })
})

describe("the installation's own channel", () => {
  beforeAll(async () => {
    await api.database.query(
      `insert into channels (id, kind, name, event_types, created_at) values ($1, 'alertmanager', 'Installation', $2, now())`,
      [INSTALLATION_CHANNEL_ID, STANDARD_EVENT_TYPES],
    )
  })

  it('is visible to every organization without its addresses, and not to bound keys', async () => {
    for (const key of [api.keys.read, foreign.keys.read]) {
      const { body } = await api.client.get(`/channels/${INSTALLATION_CHANNEL_ID}`, { key })
      expect(body).toMatchObject({
        kind: 'alertmanager',
        project_id: null,
        config: { urls: [], labels: {} },
        managed_by: 'configuration',
      })
      expect((await api.client.get('/channels', { key })).body.channels).toContainEqual(body)
    }
    expect((await api.client.get(`/channels/${INSTALLATION_CHANNEL_ID}`, { key: boundKey })).status).toBe(404)
    expect(
      (await api.client.post(`/channels/${INSTALLATION_CHANNEL_ID}/test`, undefined, { key: boundKey })).status,
    ).toBe(404)
    const bound = (await api.client.get('/channels', { key: boundKey })).body.channels
    expect(bound.map(({ managed_by }: { managed_by: string }) => managed_by)).not.toContain('configuration')
  })

  it('cannot be changed by the API', async () => {
    const path = `/channels/${INSTALLATION_CHANNEL_ID}`
    for (const call of [
      api.client.put(path, { muted: true }),
      api.client.put(path, { config: { urls: ['http://evil'] } }),
      api.client.delete(path),
      api.client.post(`${path}/rotate-secret`),
    ])
      expect(await call).toMatchObject({ status: 409, body: { error: expect.stringContaining('ALERTMANAGER_URL') } })
    expect(await get(INSTALLATION_CHANNEL_ID)).toMatchObject({ muted: false, name: 'Installation' })
  })

  it('can be tested, and the test belongs to the organization of the caller', async () => {
    const { body } = await api.client.post(`/channels/${INSTALLATION_CHANNEL_ID}/test`, undefined, {
      key: foreign.keys.admin,
    })
    const idsOf = async (key: string) =>
      (await api.client.get(`/deliveries?channel_id=${INSTALLATION_CHANNEL_ID}`, { key })).body.deliveries.map(
        ({ id }: { id: string }) => id,
      )
    expect(await idsOf(foreign.keys.read)).toEqual([body.delivery_id])
    expect(await idsOf(api.keys.read)).toEqual([])
  })
})

describe('a caller', () => {
  it.each(['read', 'write'] as const)('with the scope %s sees the origin of a webhook, not its path', async (scope) => {
    const url = 'https://hooks.example.com/services/T0/B0/secret?key=1'
    const { body } = await api.client.post('/channels', { kind: 'webhook', name: 'Secret path', config: { url } })
    const shown = async (key: string) => (await api.client.get(`/channels/${body.id}`, { key })).body.config
    expect(await shown(api.keys[scope])).toEqual({ url: 'https://hooks.example.com/…' })
    expect(await shown(api.keys.admin)).toEqual({ url: 'https://hooks.example.com/services/T0/B0/secret?…' })
  })
})
