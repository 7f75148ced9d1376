/** What a channel cannot be: one that cannot work, a relay, one of too many, a window into other projects. */

import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let boundKey: string
let otherProject: string
const api = use(startTestApi)
beforeAll(async () => {
  boundKey = (await api.client.post('/api-keys', { name: 'bound', scope: 'admin', project_id: api.project })).body.key
  otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
})
beforeEach(async () => {
  await api.database.query('truncate deliveries, channels, events')
})

const aWebhook = { kind: 'webhook', name: 'Pager', config: { url: 'https://example.com/hook' } }
const post = (fields: object = {}, key = api.keys.admin) =>
  api.client.post('/channels', { ...aWebhook, ...fields }, { key })
const make = async (fields?: object): Promise<string> => (await api.addChannel(fields)).id

describe('a channel that cannot work', () => {
  it.each([
    ['webhook', { url: 'http://10.0.0.1/x' }, 'config.url', '10.0.0.1 is a private address'],
    ['webhook', { url: 'http://0x7f000001/' }, 'config.url', '127.0.0.1 is a loopback address'],
    ['slack', { url: 'http://[::ffff:169.254.169.254]/' }, 'config.url', 'is a link-local address'],
    ['ntfy', { topic: 'x', url: 'http://10.0.0.1' }, 'config.url', '10.0.0.1 is a private address'],
    [
      'matrix',
      { homeserver: 'http://127.0.0.1:8008', room_id: '!a:b', token: 'x' },
      'config.homeserver',
      '127.0.0.1 is a loopback address',
    ],
    [
      'alertmanager',
      { urls: ['http://example.com', 'http://[fd00::1]:9093'] },
      'config.urls.1',
      'fd00::1 is a private',
    ],
  ])('is rejected: %s with %o', async (kind, config, path, why) => {
    const { status, body } = await post({ kind, config })
    expect([status, body.details]).toEqual([400, [{ path: `body.${path}`, message: expect.stringContaining(why) }]])
  })

  it('is rejected when a channel is changed to it', async () => {
    const { status, body } = await api.client.put(`/channels/${await make()}`, { config: { url: 'http://10.0.0.1/' } })
    expect([status, body.details[0].path]).toEqual([400, 'body.config.url'])
  })

  it('has warnings wherever it is shown: e-mail without SMTP_URL', async () => {
    await using app = await startTestApp({ environment: { ALLOWED_TARGETS: '10.0.0.0/8' } })
    const mail = await app.client.post('/channels', { kind: 'email', name: 'Mail', config: { to: ['a@example.com'] } })
    expect(mail).toMatchObject({ status: 201, body: { warnings: [expect.stringContaining('set SMTP_URL')] } })
    const path = `/channels/${mail.body.id}`
    const shown = [await app.client.get(path), await app.client.put(path, { name: 'Post' })].map(({ body }) => body)
    expect(shown.map(({ warnings }) => warnings)).toEqual([mail.body.warnings, mail.body.warnings])
    expect((await app.client.get('/channels')).body.channels[0].warnings).toEqual(mail.body.warnings)
    const inside = await app.client.post('/channels', { ...aWebhook, config: { url: 'http://10.1.2.3/' } })
    expect([inside.status, inside.body.warnings]).toEqual([201, undefined])
    expect((await app.client.post('/channels', { ...aWebhook, config: { url: 'http://192.168.0.1/' } })).status).toBe(
      400,
    )
  })
})

describe('a key that is bound to a project', () => {
  it('can use up the channels of its project only', async () => {
    for (let made = 1; made <= 20; made += 1) expect((await post({}, boundKey)).status).toBe(201)
    expect(await post({}, boundKey)).toMatchObject({
      status: 409,
      body: { error: 'the project has 20 channels, the maximum: remove one first' },
    })
    const wide = await make()
    expect((await post({ project_id: otherProject })).status).toBe(201)
    expect((await api.client.put(`/channels/${wide}`, { project_id: api.project })).status).toBe(409)
    expect((await api.client.put(`/channels/${wide}`, { project_id: otherProject })).status).toBe(200)
    for (let made = 1; made <= 20; made += 1) await make()
    expect((await post()).body.error).toBe('the organization has 20 channels, the maximum: remove one first')
  })

  it('does not see the responses of channels of the whole organization', async () => {
    const wide = await make()
    const own = await make({ project_id: api.project })
    const check = await api.addCheck()
    await api.ping(check.public_id, { type: 'fail', exitCode: null })
    await api.database.query("update deliveries set last_status = 500, last_error = 'responded 500: theirs'")
    const responses = async (key: string) => {
      const { deliveries } = (await api.client.get('/deliveries', { key })).body
      for (const delivery of deliveries)
        expect((await api.client.get(`/deliveries/${delivery.id}`, { key })).body).toEqual(delivery)
      return Object.fromEntries(
        deliveries.map((d: Record<string, unknown>) => [d.channel_id, [d.last_status, d.last_error]]),
      )
    }
    const seen = [500, 'responded 500: theirs']
    expect(await responses(boundKey)).toEqual({ [wide]: [null, null], [own]: seen })
    expect(await responses(api.keys.read)).toEqual({ [wide]: seen, [own]: seen })
    const { deliveries } = (await api.client.get(`/deliveries?channel_id=${wide}`)).body
    const retried = await api.client.post(`/deliveries/${deliveries[0].id}/retry`, undefined, { key: boundKey })
    expect(retried).toMatchObject({ status: 202, body: { last_status: null, last_error: null } })
  })
})

it('a delivery of another project, of a removed channel, or unknown is not found', async () => {
  const channel = await make()
  const { delivery_id: id } = (await api.client.post(`/channels/${channel}/test`)).body
  expect((await api.client.get(`/deliveries/${id}`)).body).toMatchObject({ id, type: 'channel.test' })
  expect((await api.client.get(`/deliveries/${id}`, { key: boundKey })).status).toBe(404)
  await api.client.delete(`/channels/${channel}`)
  expect((await api.client.get(`/deliveries/${id}`)).status).toBe(404)
})

it('a channel is tested at most ten times in an hour', async () => {
  const [one, other] = [await make(), await make()]
  const test = (id: string) => api.client.post(`/channels/${id}/test`)
  for (let tested = 1; tested <= 10; tested += 1) expect((await test(one)).status).toBe(202)
  const { status, headers, body } = await test(one)
  const seconds = Number(headers.get('retry-after'))
  expect([status, body.error]).toEqual([
    429,
    `more than 10 tests of this channel in an hour; try again in ${seconds} s`,
  ])
  expect(seconds).toBeGreaterThan(3_500)
  expect((await api.client.get(`/deliveries?channel_id=${one}`)).body.deliveries).toHaveLength(10)
  expect((await test(other)).status).toBe(202)
})
