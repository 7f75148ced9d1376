import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { WebhookSettings } from '../../../src/channels/kinds/webhook/config.ts'
import { SECRET_OVERLAP_MS } from '../../../src/channels/kinds/webhook/signature.ts'
import { STANDARD_EVENT_TYPES } from '../../../src/domain/event.ts'
import { ISO, UUID } from '../../support/patterns.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let otherProject: string

const api = use(startTestApi)
beforeAll(async () => {
  otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
})
/** An organization may have few channels. */
beforeEach(async () => {
  await api.database.query('delete from channels')
})

const make = (fields?: object, key?: string) => api.addChannel(fields, key)
/** The unsealed settings. */
async function openSettings(id: string) {
  const { rows } = await api.database.query<{ sealed: Buffer; sealedWith: Buffer }>(
    'select sealed, sealed_with as "sealedWith" from channels where id = $1',
    [id],
  )
  return api.context.sealer.open(id, rows[0]!)
}
const get = async (id: string) => (await api.client.get(`/channels/${id}`)).body

describe('a channel', () => {
  it('is created, shown and listed', async () => {
    const { status, body } = await api.client.post('/channels', {
      kind: 'webhook',
      name: ' Pager ',
      project_id: api.project.toUpperCase(),
      events: ['check.down', 'check.unknown', 'check.down'],
      muted: true,
      after_seconds: 86_400,
      config: { url: 'https://user:geheim@example.com/hook?token=geheim' },
    })
    expect(status).toBe(201)
    const { secret, ...shown } = body
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(shown).toEqual({
      id: expect.stringMatching(UUID),
      kind: 'webhook',
      name: 'Pager',
      project_id: api.project,
      events: ['check.down', 'check.unknown'],
      muted: true,
      after_seconds: 86_400,
      config: { url: 'https://…@example.com/hook?…' },
      managed_by: 'api',
      created_at: expect.stringMatching(ISO),
    })
    expect(await get(shown.id)).toEqual(shown)
    expect((await api.client.get('/channels')).body.channels).toContainEqual(shown)
  })

  it('of an Alertmanager receives the standard events without warnings by default', async () => {
    const config = { urls: ['https://alerts.example.com'] }
    const { id } = await make({ kind: 'alertmanager', config })
    expect((await get(id)).events).toEqual([
      'check.down',
      'check.up',
      'check.paused',
      'check.resumed',
      'check.flapping',
    ])
  })

  it('serves the organization, receives the standard events and is not muted by default', async () => {
    const { id } = await make()
    expect(await get(id)).toMatchObject({ project_id: null, events: STANDARD_EVENT_TYPES, muted: false })
    expect((await get(id)).after_seconds).toBe(0)
  })

  it.each([-1, 86_401, 1.5, '60'])('rejects after_seconds %s', async (after_seconds) => {
    const body = { kind: 'webhook', name: 'x', config: { url: 'https://example.com/' }, after_seconds }
    const { id } = await make({ after_seconds: 60 })
    const error = 'after_seconds must be an integer from 0 to 86400'
    const rejected = { status: 400, body: { error } }
    expect(await api.client.post('/channels', body)).toMatchObject(rejected)
    expect(await api.client.put(`/channels/${id}`, { after_seconds })).toMatchObject(rejected)
    expect((await get(id)).after_seconds).toBe(60)
  })

  it.each([
    [
      'alertmanager',
      { urls: ['http://u:geheim@am-0:9093', 'http://am-1:9093/x'], labels: { team: 'a', severity: 'low' } },
      { urls: ['http://…@am-0:9093', 'http://am-1:9093/x'], labels: { team: 'a', severity: 'low' } },
    ],
    ['alertmanager', { urls: ['http://am-0:9093', 'http://am-0:9093'] }, { urls: ['http://am-0:9093'], labels: {} }],
    ['slack', { url: 'https://hooks.slack.com/services/T/B/geheim' }, { url: 'https://hooks.slack.com/…' }],
    [
      'email',
      { to: [' a@example.com ', 'b@example.com', 'a@example.com'] },
      { to: ['a@example.com', 'b@example.com'] },
    ],
  ])('of the kind %s is shown without secrets', async (kind, config, shown) => {
    const body = await make({ kind, config })
    expect(body).toMatchObject({ kind, config: shown })
    expect(body).not.toHaveProperty('secret')
    expect(await get(body.id)).toEqual(body)
  })

  it.each([[['check.flapping', 'check.up', 'check.late']], [['check.paused', 'check.flapping']]])(
    'has the events that were chosen, in their order: %j',
    async (events) => {
      const { id } = await make({ events: ['check.down'] })
      expect((await api.client.put(`/channels/${id}`, { events })).body.events).toEqual(events)
      expect((await get(id)).events).toEqual(events)
      expect(await get((await make({ events })).id)).toMatchObject({ events })
    },
  )

  it('has no secret in any response and none in clear text in the database', async () => {
    const secrets = []
    for (const [kind, config] of [
      ['webhook', { url: 'https://user:geheim@example.com/hook?token=geheim' }],
      ['slack', { url: 'https://hooks.slack.com/services/geheim' }],
      ['alertmanager', { urls: ['http://user:geheim@am:9093'] }],
      ['telegram', { token: `1:${'geheim'.repeat(6)}`, chat_id: -1001234567890 }],
      ['ntfy', { topic: 'x', url: 'https://user:geheim@ntfy.example.com', token: 'tk_geheim' }],
      ['matrix', { homeserver: 'https://matrix.example.com', room_id: '!a:b', token: 'geheim' }],
    ]) {
      const { secret } = await make({ kind, config })
      if (secret !== undefined) secrets.push(secret)
    }
    const answers = JSON.stringify([
      (await api.client.get('/channels')).body,
      (await api.client.get('/deliveries')).body,
    ])
    const { rows } = await api.database.query<{ text: string }>(
      `select c::text || encode(c.sealed, 'escape') as text from channels c where organization_id is not null`,
    )
    const everything = answers + rows.map(({ text }) => text).join()
    expect(everything).not.toContain('geheim')
    expect(everything).not.toContain('whsec_')
    for (const secret of secrets) expect(everything).not.toContain(secret.slice('whsec_'.length))
  })

  it('is listed page by page, in the order of creation', async () => {
    for (let i = 0; i < 5; i += 1) await make()
    const all = (await api.client.get('/channels')).body.channels
    const first = (await api.client.get('/channels?limit=2')).body
    const rest = (await api.client.get(`/channels?cursor=${first.next_cursor}`)).body
    expect([...first.channels, ...rest.channels]).toEqual(all)
    expect(first.channels).toHaveLength(2)
  })

  it('whose settings cannot be read has the config null, and accepts a new one', async () => {
    const { id } = await make()
    await api.database.query(`update channels set sealed_with = '\\x0102030405060708' where id = $1`, [id])
    expect(await get(id)).toMatchObject({ name: 'Pager', config: null })
    const rotated = await api.client.post(`/channels/${id}/rotate-secret`)
    expect(rotated).toMatchObject({ status: 409, body: { error: expect.stringContaining('PREVIOUS_SECRET_KEYS') } })
    expect((await api.client.put(`/channels/${id}`, { name: 'Renamed' })).body).toMatchObject({
      name: 'Renamed',
      config: null,
    })
    const updated = await api.client.put(`/channels/${id}`, { config: { url: 'https://example.com/new' } })
    expect(updated).toMatchObject({ status: 200, body: { config: { url: 'https://example.com/new' } } })
    expect((await api.client.post(`/channels/${id}/rotate-secret`)).status).toBe(200)
  })
})

const URL_RULE = 'must be an http or https URL of at most 2048 characters, without white space and without #'

describe('updating a channel', () => {
  it('keeps omitted fields, and {} changes nothing', async () => {
    const { secret: _, ...made } = await make({ project_id: api.project, events: ['check.up'], muted: true })
    expect(await api.client.put(`/channels/${made.id}`, {})).toMatchObject({ status: 200, body: made })
    const { body } = await api.client.put(`/channels/${made.id}`, { name: 'Renamed' })
    expect(body).toEqual({ ...made, name: 'Renamed' })
    expect(await get(made.id)).toEqual(body)
  })

  it('changes what is given', async () => {
    const { id } = await make()
    const fields = {
      name: 'New',
      project_id: otherProject,
      events: ['check.unknown'],
      muted: true,
      after_seconds: 1_800,
      config: { url: 'https://new.example/' },
    }
    expect((await api.client.put(`/channels/${id}`, fields)).body).toMatchObject(fields)
    expect(await get(id)).toMatchObject(fields)
    expect(
      (await api.client.put(`/channels/${id}`, { project_id: null, muted: false, after_seconds: 0 })).body,
    ).toMatchObject({
      ...fields,
      project_id: null,
      muted: false,
      after_seconds: 0,
    })
  })

  it('keeps secrets and labels when what was read is written again', async () => {
    const config = { urls: ['http://user:geheim@am-0:9093', 'http://am-1:9093'], labels: { team: 'a' } }
    const { id } = await make({ kind: 'alertmanager', config })
    const { id: _, created_at, managed_by, ...shown } = await get(id)
    const { status, body } = await api.client.put(`/channels/${id}`, shown)
    expect({ status, body }).toEqual({ status: 200, body: { id, created_at, managed_by, ...shown } })
    expect(await openSettings(id)).toEqual({ kind: 'alertmanager', ...config })
  })

  it('accepts its own kind, and no other', async () => {
    const { id } = await make()
    expect((await api.client.put(`/channels/${id}`, { kind: 'webhook' })).status).toBe(200)
    const { status, body } = await api.client.put(`/channels/${id}`, {
      kind: 'slack',
      config: { url: 'https://x.example' },
    })
    const message = 'must be webhook: the kind of a channel cannot change, create another channel instead'
    expect({ status, body }).toEqual({
      status: 400,
      body: { error: `kind ${message}`, code: 'invalid_request', details: [{ path: 'body.kind', message }] },
    })
  })

  it.each<[object, string]>([
    [{ config: { url: 'x' } }, `config.url ${URL_RULE}`],
    [{ name: null }, 'name cannot be null'],
    [{ id: '0199aaaa-0000-7000-8000-00000000000a' }, 'id is not a known field'],
  ])('with %j is rejected and changes nothing', async (fields, error) => {
    const { secret: _, ...made } = await make()
    expect(await api.client.put(`/channels/${made.id}`, { muted: true, ...fields })).toMatchObject({
      status: 400,
      body: { error },
    })
    expect(await get(made.id)).toEqual(made)
  })
})

describe('rotating a secret', () => {
  it('shows a new one, and the previous one stays valid for a day', async () => {
    const { id, secret: first } = await make()
    const before = api.context.clock.now()
    const { status, body } = await api.client.post(`/channels/${id}/rotate-secret`)
    expect({ status, body }).toEqual({ status: 200, body: { secret: expect.stringMatching(/^whsec_/) } })
    expect(body.secret).not.toBe(first)
    const settings = (await openSettings(id)) as WebhookSettings
    expect(settings.secrets).toEqual([
      { secret: body.secret, expiresAt: null },
      { secret: first, expiresAt: expect.any(Number) },
    ])
    expect(settings.secrets[1]!.expiresAt! - before - SECRET_OVERLAP_MS).toBeGreaterThanOrEqual(0)
    expect(settings.secrets[1]!.expiresAt! - api.context.clock.now() - SECRET_OVERLAP_MS).toBeLessThanOrEqual(0)
  })

  it('is rejected for a channel of another kind', async () => {
    const { id } = await make({ kind: 'email', config: { to: ['a@example.com'] } })
    expect(await api.client.post(`/channels/${id}/rotate-secret`)).toMatchObject({
      status: 409,
      body: { error: 'only webhooks have a signing secret; the kind of the channel is email' },
    })
  })
})

describe('a test', () => {
  it.each([false, true])('is queued for its channel, muted: %s', async (muted) => {
    const { id } = await make({ muted, project_id: api.project })
    const { status, body } = await api.client.post(`/channels/${id}/test`)
    expect({ status, body }).toEqual({ status: 202, body: { delivery_id: expect.stringMatching(UUID) } })
    expect((await api.client.get(`/deliveries?channel_id=${id}`)).body.deliveries).toEqual([
      expect.objectContaining({
        id: body.delivery_id,
        type: 'channel.test',
        check_id: null,
        status: 'pending',
        attempts: 0,
      }),
    ])
  })
})

describe('removing a channel', () => {
  it('removes its deliveries', async () => {
    const { id } = await make()
    await api.client.post(`/channels/${id}/test`)
    expect(await api.client.delete(`/channels/${id}`)).toMatchObject({ status: 204, body: null })
    expect((await api.client.get(`/deliveries?channel_id=${id}`)).body.deliveries).toEqual([])
    for (const call of [
      api.client.get(`/channels/${id}`),
      api.client.put(`/channels/${id}`, { name: 'x' }),
      api.client.delete(`/channels/${id}`),
      api.client.post(`/channels/${id}/test`),
      api.client.post(`/channels/${id}/rotate-secret`),
    ])
      expect(await call).toMatchObject({ status: 404, body: { error: 'channel not found' } })
  })
})
