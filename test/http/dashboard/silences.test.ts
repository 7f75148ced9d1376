/** Silences on the dashboard: the list, the two forms, the page of a check and what it says of deliveries. */

import { beforeEach, describe, expect, it } from 'vitest'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { decodeHtml, escapeHtml, readForm as readFormOf, readText as readTextOf } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(startTestApi)
const writer = use(() => visit(api, 'write'))
const reader = use(() => visit(api, 'read'))
beforeEach(() => api.database.query('delete from silences'))

const NEW = '/silences/new'
const readText = (page: string) => decodeHtml(readTextOf(page))
const readForm = (page: string, action: string) => readFormOf(page, escapeHtml(action).replace('?', '\\?'))
const list = async () => (await api.client.get('/silences')).body.silences
const make = async (fields: object = {}) => {
  const ends_at = new Date(api.context.clock.now() + HOUR).toISOString()
  const body = { project_id: api.project, ends_at, comment: 'New <b>disks</b>', ...fields }
  return (await api.client.post('/silences', body)).body
}
/** Not this year. */
const AGAIN = { ends_at: undefined, schedule: '0 3 29 2 *', time_zone: 'Europe/Berlin', duration_seconds: 7_200 }

describe('the forms', () => {
  it('make a silence of a project, for a time from now on', async () => {
    const { text } = await writer.get(NEW)
    const fields = readForm(text, NEW)
    expect(fields).toMatchObject({ project_id: api.project, tag: '', for: '3600', time_zone: 'UTC', comment: '' })
    const { status, location } = await writer.post(NEW, { ...fields, for: '14400', comment: 'New disks' })
    const [made] = await list()
    expect([status, location]).toEqual([303, `/silences/${made.id}?done=silence-created`])
    expect(made).toMatchObject({
      project_id: api.project,
      check_id: null,
      tag: null,
      comment: 'New disks',
      by: { kind: 'user' },
    })
    const left = Date.parse(made.ends_at) - api.context.clock.now()
    expect(left).toBeGreaterThan(4 * HOUR - MINUTE)
    expect(left).toBeLessThanOrEqual(4 * HOUR)
  })

  it('read times in the zone, and take a tag', async () => {
    const { location } = await writer.post(NEW, {
      ...readForm((await writer.get(NEW)).text, NEW),
      tag: 'db',
      starts_at: '2099-07-01T03:00',
      ends_at: '2099-07-01T05:30',
      time_zone: 'Europe/Berlin',
      comment: 'Later',
    })
    expect(await list()).toMatchObject([
      { tag: 'db', starts_at: '2099-07-01T01:00:00.000Z', ends_at: '2099-07-01T03:30:00.000Z', active: false },
    ])
    expect(readText((await writer.get(location!)).text)).toContain('Planned')
  })

  it('count the length from the start', async () => {
    const fields = readForm((await writer.get(NEW)).text, NEW)
    await writer.post(NEW, { ...fields, starts_at: '2099-07-01T03:00', comment: 'x' })
    expect(await list()).toMatchObject([{ starts_at: '2099-07-01T03:00:00.000Z', ends_at: '2099-07-01T04:00:00.000Z' }])
  })

  it('make a maintenance window', async () => {
    const form = `${NEW}?times=again`
    expect((await writer.get(NEW)).text).toContain(`href="${form}"`)
    const fields = readForm((await writer.get(form)).text, form)
    const typed = { schedule: '0 3 * * 0', duration_seconds: '2 hours', time_zone: 'Europe/Berlin', comment: 'Updates' }
    const { location } = await writer.post(form, { ...fields, ...typed })
    expect(await list()).toMatchObject([{ ...typed, duration_seconds: 7_200, starts_at: null }])
    const text = readText((await writer.get(location!)).text)
    expect(text).toContain('The silence is created.')
    expect(text).toMatch(/At 03:00.* Sunday.*, Berlin, for 2 hours/)
  })

  it('of a check lead back to it, in the zone of its schedule', async () => {
    const { id } = await api.addCheck({ name: 'Backup', schedule: '0 2 * * *', time_zone: 'Europe/Berlin' })
    const form = `${NEW}?check=${id}`
    expect((await writer.get(`/checks/${id}`)).text).toContain(`href="${form}"`)
    const { text } = await writer.get(form)
    const fields = readForm(text, form)
    expect(fields).toMatchObject({ time_zone: 'Europe/Berlin' })
    expect(fields).not.toHaveProperty('project_id')
    expect(text).toContain(`href="${form}&amp;times=again"`)
    const { location } = await writer.post(form, { ...fields, comment: 'New disks' })
    expect(location).toBe(`/checks/${id}?done=silence-created`)
    expect(await list()).toMatchObject([{ check_id: id, project_id: api.project }])
  })

  it.each<[string, Record<string, string>, string]>([
    ['', { comment: 'x', for: '' }, 'Until must be an ISO 8601 time'],
    ['', { comment: 'x', ends_at: '2020-01-01T00:00' }, 'Until must be in the future.'],
    ['', { comment: 'x', time_zone: 'Mars/Base' }, 'Time zone must be an IANA time zone'],
    ['', { comment: 'x', tag: 'no tag' }, 'Tag must be a tag'],
    ['', { comment: 'x'.repeat(201) }, 'Comment must be text of at most 200 characters'],
    ['?times=again', { comment: 'x', schedule: 'x', duration_seconds: '1 h' }, 'Begins at'],
    ['?times=again', { comment: 'x', schedule: '@daily', duration_seconds: '9' }, 'Lasts must be an integer from 10'],
    [
      '?times=again',
      { comment: 'x', schedule: '@daily', duration_seconds: 'long' },
      'Lasts must be an integer from 10',
    ],
  ])('show what is wrong, with what was typed (%#)', async (query, typed, fault) => {
    const form = NEW + query
    const { status, text } = await writer.post(form, { ...readForm((await writer.get(form)).text, form), ...typed })
    expect(status).toBe(422)
    expect(readText(text)).toContain(fault)
    expect(readForm(text, form)).toMatchObject(typed)
    expect(await list()).toEqual([])
  })

  it('are not for readers, of another site, or of a check that is not there', async () => {
    expect((await reader.get(NEW)).status).toBe(403)
    expect((await reader.post(NEW)).status).toBe(403)
    expect((await writer.post(NEW, {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect((await writer.get(`${NEW}?check=${crypto.randomUUID()}`)).status).toBe(404)
    expect((await reader.get('/silences')).text).not.toContain(NEW)
  })
})

describe('the list', () => {
  it('shows what holds and what begins, and what has ended on demand', async () => {
    const check = await api.addCheck({ name: 'Backup' })
    await make()
    await make({ tag: 'db', ...AGAIN })
    await make({ check_id: check.id, comment: 'Of one' })
    const over = await make({ comment: 'Long ago' })
    await api.database.query(
      `update silences set starts_at = now() - interval '2 days', ends_at = now() - interval '1 day' where id = $1`,
      [over.id],
    )
    const { text } = await reader.get('/silences')
    const shown = readText(text)
    expect(shown).toMatch(/Holds ends in 59 minutes all checks of .* New <b>disks<\/b> the API key admin/)
    expect(shown).toMatch(/Planned begins in .* checks with the tag db of/)
    expect(text).toContain(`href="/checks/${check.id}"`)
    expect(shown).not.toContain('Long ago')
    expect(readText((await reader.get('/silences?ended=shown')).text)).toMatch(/Ended 1 day ago .* Long ago/)
    await api.client.delete(`/checks/${check.id}`)
    expect(readText((await reader.get('/silences')).text)).toContain('a check that was deleted')
  })

  it('of a silence leads to its deletion, which is asked for', async () => {
    const { id } = await make()
    const page = `/silences/${id}`
    expect((await reader.get('/silences')).text).toContain(`href="${page}"`)
    expect((await reader.get(page)).text).not.toContain(`${page}/delete`)
    expect((await reader.get(`${page}/delete`)).status).toBe(403)
    expect((await writer.get(page)).text).toContain(`href="${page}/delete"`)
    const { text } = await writer.get(`${page}/delete`)
    expect(readText(text)).toContain('each check that it covers and that is down is notified at once')
    const { location } = await writer.post(`${page}/delete`, readForm(text, `${page}/delete`))
    expect(location).toBe('/silences?done=silence-deleted')
    expect(await list()).toEqual([])
    expect((await writer.get(page)).status).toBe(404)
  })
})

describe('a check', () => {
  it('says while it is silenced until when, by whom and why, and is marked in the list', async () => {
    const { id } = await api.addCheck({ name: 'Silent one' })
    const silenced = async () => /id="silenced">(.*?)<\/p>/.exec((await reader.get(`/checks/${id}`)).text)?.[1]
    const isMarked = async () => (await reader.get('/checks?q=Silent')).text.includes('>Silenced</span>')
    await make(AGAIN)
    expect([await silenced(), await isMarked()]).toEqual([undefined, false])
    const later = new Date(api.context.clock.now() + 2 * HOUR).toISOString()
    await make({ comment: 'First' })
    const last = await make({ ends_at: later })
    const text = (await silenced())!
    expect(readText(text)).toMatch(
      /^Silenced until .*UTC \(in \d.*\) by the API key admin \( New <b>disks<\/b> \): no channel is notified\. The silence $/,
    )
    expect(text).toContain(`href="/silences/${last.id}"`)
    expect(await isMarked()).toBe(true)
  })

  it('says of what was not sent that another check was down, with a link to that check', async () => {
    await api.addChannel()
    const parent = await api.addCheck({ name: 'Database' })
    const child = await api.addCheck({ depends_on: [parent.id] })
    for (const { public_id } of [parent, child]) await api.ping(public_id, { type: 'fail', exitCode: 1 })
    const link = `<a href="/checks/${parent.id}">a check that this one depends on was down</a>`
    expect((await reader.get(`/checks/${child.id}`)).text).toContain(link)
  })

  it('says of what was not sent that a silence covered it, with a link while that exists', async () => {
    const channel = await api.addChannel()
    const { id, public_id } = await api.addCheck()
    const silence = await make()
    await api.ping(public_id, { type: 'fail', exitCode: 1 })
    const link = `<a href="/silences/${silence.id}">a silence covered the check</a>`
    const pages = [`/checks/${id}`, '/deliveries?status=suppressed', `/channels/${channel.id}`]
    for (const page of pages) expect((await reader.get(page)).text).toContain(link)
    await api.client.delete(`/silences/${silence.id}`)
    for (const page of pages) {
      const { text } = await reader.get(page)
      expect(text).toContain('a silence covered the check')
      expect(text).not.toContain(link)
    }
  })
})

it('a silence that a HeartbeatSilence declares names it, and is not deleted here', async () => {
  const { id } = await make()
  const hostile = '<script>alert(1)</script>'
  const declare = (selector: object) =>
    api.database.query(
      `update silences set kubernetes_cluster = 'prod', kubernetes_namespace = 'shop', kubernetes_name = $2, selector = $3,
          created_by = '{"kind": "kubernetes", "id": null, "name": "prod"}' where id = $1`,
      [id, hostile, JSON.stringify(selector)],
    )
  await declare([{ key: 'team', operator: 'In', values: ['<b>'] }])
  const path = `/silences/${id}`
  const { text } = await writer.get(path)
  expect(text).toContain('the HeartbeatSilence')
  expect(text).not.toContain(hostile)
  expect(readText(text)).toContain(`shop/${hostile}`)
  expect(readText(text)).toContain('HeartbeatChecks of the namespace shop with the labels team=<b>')
  expect(text).not.toContain(`${path}/delete`)
  for (const response of [await writer.get(`${path}/delete`), await writer.post(`${path}/delete`)])
    expect(response.status).toBe(409)
  expect(await list()).toMatchObject([
    {
      managed_by: 'kubernetes',
      kubernetes: { cluster: 'prod', namespace: 'shop', name: hostile, check_selector: 'team=<b>' },
    },
  ])
  await declare([])
  expect(readText((await reader.get('/silences')).text)).toContain('all HeartbeatChecks of the namespace shop')
})
