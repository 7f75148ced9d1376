/** What the link of a message does: for whom, until when, and that looking at it does nothing. */

import { describe, expect, it } from 'vitest'
import { createIncidentTokens } from '../../../src/auth/incident-tokens.ts'
import { HOUR } from '../../support/builders.ts'
import { readText } from '../../support/form.ts'
import { SECRET_KEY, startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'
import { acknowledgedOf, failAgain, findClientAddress, send, takeDown, tokens } from './fixture.ts'

const api = use(() => startTestApi({ findClientAddress }))
const open = () => takeDown(api)
const iso = expect.stringMatching(/^\d{4}-.*Z$/)

describe('the page of the link', () => {
  it('shows what is down, since when, why, the buttons and nothing else', async () => {
    const { path, id, publicId } = await takeDown(api, {
      name: 'Nightly backup',
      description: 'the runbook',
      tags: ['team:shop'],
      labels: { team: 'shop' },
    })
    const { status, headers, text } = await send(api, path)
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(readText(text)).toMatch(
      /^ ?Nightly backup is down .* Nightly backup is down Down since \d\d:\d\d UTC \(less than a minute\): the job reported a failure\. Your name, for the others \(optional\) I have it Quiet for 2 hours Quiet for 1 day Nothing more is sent of this/,
    )
    expect(text.match(/<button [^>]*>/g)).toEqual([
      '<button type="submit" name="for_seconds" value="">',
      '<button type="submit" name="for_seconds" value="7200">',
      '<button type="submit" name="for_seconds" value="86400">',
    ])
    for (const hidden of [id, publicId, api.project, 'output', '17', 'runbook', 'shop', 'slug', path])
      expect(text).not.toContain(hidden)
  })

  it.each(['GET', 'HEAD'])('%s changes nothing, however often a scanner follows the link', async (method) => {
    const { path, id } = await open()
    const before = api.audited.length
    for (let times = 0; times < 3; times += 1) {
      const { status, text } = await send(api, path, { method, headers: { 'sec-purpose': 'prefetch' } })
      expect([status, text === '']).toEqual([200, method === 'HEAD'])
    }
    expect(await acknowledgedOf(api, id)).toBeNull()
    expect(api.audited).toHaveLength(before)
  })

  it('may not be framed, cached, indexed, or run or load anything', async () => {
    const { path } = await open()
    for (const [address, status] of [
      [path, 200],
      ['/ack/x', 404],
    ] as const) {
      const { headers, ...page } = await send(api, address)
      expect(page.status).toBe(status)
      expect(Object.fromEntries(headers)).toMatchObject({
        'cache-control': 'no-store',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'x-robots-tag': 'noindex',
        'x-content-type-options': 'nosniff',
        'content-security-policy': expect.stringMatching(
          /^default-src 'none'; style-src 'sha256-[\w+/=]{44}'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'$/,
        ),
      })
      expect(headers.get('set-cookie')).toBeNull()
      expect(page.text).not.toMatch(/<script|https?:|<img|<iframe| on\w+=/)
    }
  })

  it('is below the path of the site', async () => {
    const baseUrl = () => 'https://example.com/ops/heartbeat/api/v1'
    await using below = await startTestApi({ baseUrl })
    const down = await takeDown(below)
    const post = { form: {}, headers: { host: 'example.com' } }
    expect((await send(below, `/ops/heartbeat${down.path}`, post)).status).toBe(200)
    expect((await send(below, down.path, post)).text).toContain('acknowledged before')
  })

  it('is there without a dashboard', async () => {
    await using headless = await startTestApi({ isDashboardOn: false })
    const { path } = await takeDown(headless)
    expect((await send(headless, path)).status).toBe(200)
    expect((await send(headless, path, { form: {} })).text).toContain('Thank you.')
  })

  it.each(['PUT', 'DELETE', 'PATCH', 'OPTIONS'])('refuses %s', async (method) => {
    const { path, id } = await open()
    const { status, headers } = await send(api, path, { method })
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
    expect(await acknowledgedOf(api, id)).toBeNull()
  })
})

describe('a press of a button', () => {
  it.each([
    ['without a body, as ntfy sends it', { method: 'POST' }, null, null],
    ['with an empty body', { method: 'POST', body: '' }, null, null],
    ['I have it', { form: { name: ' Ada ', for_seconds: '' } }, 'Ada', null],
    ['Quiet for 2 hours', { form: { name: '', for_seconds: '7200' } }, null, 2 * HOUR],
    ['Quiet for 1 day', { form: { name: 'Ada', for_seconds: '86400' } }, 'Ada', 24 * HOUR],
  ])('%s', async (_, init, name, lastsMs) => {
    const { path, id } = await open()
    const { status, text } = await send(api, path, { ...init, from: '203.0.113.9' })
    expect(status).toBe(200)
    const shown = await acknowledgedOf(api, id)
    expect(shown).toEqual({ by: { kind: 'link', id: null, name }, at: iso, until: lastsMs && iso, comment: null })
    if (lastsMs !== null) expect(Date.parse(shown.until) - Date.parse(shown.at)).toBe(lastsMs)
    const by = name === null ? 'the link of a message' : 'Ada (by the link of a message)'
    const end = lastsMs === null ? 'it is up again' : '.*UTC \\(in .*\\)'
    expect(readText(text).replaceAll(' )', ')')).toMatch(
      new RegExp(
        `Thank you\\. Acknowledged by ${by.replaceAll(/[()]/g, '\\$&')} since \\d\\d:\\d\\d UTC \\(less than a minute\\), until ${end}\\.`,
      ),
    )
    expect(text).not.toContain('<button')
    expect(api.audited.at(-1)).toMatchObject({
      actor: { kind: 'link', id: null, name },
      action: 'check.acknowledged',
      target: { kind: 'check', id, name: 'Nightly backup' },
      address: '203.0.113.9',
      detail: lastsMs === null ? {} : { until: shown.until },
    })
    const { entries } = (await api.client.get('/audit?action=check.acknowledged')).body
    expect(entries[0]).toMatchObject({ actor: { kind: 'link' }, target: { id } })
  })

  it('is refused for a choice that no button has, a body that is no form, and one that is too large', async () => {
    const { path, id } = await open()
    const large = { name: 'x'.repeat(66_000) }
    for (const [status, init] of [
      [400, { form: { for_seconds: '999999999' } }],
      [400, { form: { for_seconds: '2h' } }],
      [
        400,
        { method: 'POST', body: 'a&'.repeat(1_001), headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      ],
      [415, { method: 'POST', body: '{"name":"Ada"}', headers: { 'content-type': 'application/json' } }],
      [413, { form: large }],
    ] as const) {
      const sent = await send(api, path, init)
      expect([sent.status, readText(sent.text)]).toEqual([status, expect.stringContaining('This did not work')])
    }
    expect(await acknowledgedOf(api, id)).toBeNull()
  })

  it('repeated, says who was first, and changes nothing', async () => {
    const { path, id } = await open()
    await send(api, path, { form: { name: 'Ada' } })
    const first = await acknowledgedOf(api, id)
    const { length } = api.audited
    const again = await send(api, path, { form: { name: 'Bob', for_seconds: '86400' } })
    expect(again.status).toBe(200)
    expect(readText(again.text)).toMatch(/Nothing has changed: it was acknowledged before\. Acknowledged by Ada \(by/)
    expect(again.text).not.toContain('Bob')
    expect(await acknowledgedOf(api, id)).toEqual(first)
    expect(api.audited).toHaveLength(length)
    const looked = await send(api, path)
    expect(readText(looked.text)).toContain('Acknowledged by Ada')
    expect(looked.text).not.toMatch(/<button|Nothing has changed/)
  })

  it('says that a user was first, without the comment', async () => {
    const { path, id } = await open()
    await api.client.post(`/checks/${id}/acknowledge`, { comment: 'disks are on their way' })
    const { text } = await send(api, path, { form: { name: 'Bob' } })
    expect(readText(text)).toContain('Acknowledged by the API key admin since')
    expect(text).not.toContain('disks')
    expect(await acknowledgedOf(api, id)).toMatchObject({ by: { kind: 'api_key' } })
  })

  it('by two at once is one', async () => {
    const { path, id } = await open()
    const { length } = api.audited
    const texts = await Promise.all(
      ['Ada', 'Bob', 'Cyd'].map(async (name) => (await send(api, path, { form: { name } })).text),
    )
    expect(texts.filter((text) => text.includes('Thank you.'))).toHaveLength(1)
    expect(api.audited).toHaveLength(length + 1)
    const { by } = await acknowledgedOf(api, id)
    for (const text of texts) expect(readText(text)).toContain(`Acknowledged by ${by.name}`)
  })

  it('takes it again when the time of the one before is over', async () => {
    await using later = await startTestApi()
    const { path, id } = await takeDown(later)
    await send(later, path, { form: { name: 'Ada', for_seconds: '7200' } })
    later.moveClock(2 * HOUR - 1_000)
    expect((await send(later, path, { form: { name: 'Bob' } })).text).toContain('Nothing has changed')
    later.moveClock(1_000)
    expect(await acknowledgedOf(later, id)).toBeNull()
    expect((await send(later, path, { form: { name: 'Bob' } })).text).toContain('Thank you.')
    expect(await acknowledgedOf(later, id)).toMatchObject({ by: { name: 'Bob' }, until: null })
  })

  it('needs no Origin and no cookie, and neither changes what it does', async () => {
    const visitor = await visit(api)
    for (const headers of [
      { origin: 'https://evil.example.com', 'sec-fetch-site': 'cross-site' },
      { origin: 'null' },
      { cookie: `heartbeat_session=${visitor.cookies.get('heartbeat_session')}` },
      { cookie: 'heartbeat_session=forged', authorization: 'Bearer forged' },
    ]) {
      const { path, id } = await open()
      const { status, headers: answered } = await send(api, path, { form: {}, headers })
      expect([status, answered.get('set-cookie'), answered.get('access-control-allow-origin')]).toEqual([
        200,
        null,
        null,
      ])
      expect(await acknowledgedOf(api, id)).toMatchObject({ by: { kind: 'link', id: null } })
    }
  })
})

describe('a link that is over', () => {
  const expectOver = async (path: string) => {
    for (const init of [{}, { form: { name: 'Ada' } }]) {
      const { status, text } = await send(api, path, init)
      expect([status, readText(text)]).toEqual([410, expect.stringContaining('There is nothing to do.')])
      expect(text).not.toContain('Nightly backup')
    }
  }

  it('because the check is up again: also when that came after the page was opened', async () => {
    const { path, publicId, id } = await open()
    expect((await send(api, path)).status).toBe(200)
    await api.ping(publicId)
    await expectOver(path)
    expect(await acknowledgedOf(api, id)).toBeNull()
  })

  it('because another incident has begun: each has a link of its own', async () => {
    const first = await open()
    await api.ping(first.publicId)
    const second = await failAgain(api, first)
    expect(second.path).not.toBe(first.path)
    await expectOver(first.path)
    expect((await send(api, second.path)).status).toBe(200)
    expect(await acknowledgedOf(api, first.id)).toBeNull()
  })

  it('because the check is paused or removed', async () => {
    const { path, id } = await open()
    await api.client.patch(`/checks/${id}/pause`)
    await expectOver(path)
    await api.client.delete(`/checks/${id}`)
    await expectOver(path)
  })

  it('because it names another check', async () => {
    const [one, other] = [await open(), await open()]
    const { since } = tokens.read(one.path.slice('/ack/'.length))!
    await expectOver(`/ack/${tokens.sign({ checkId: other.id, since: since - 1 })}`)
    await send(api, one.path, { form: {} })
    expect(await acknowledgedOf(api, other.id)).toBeNull()
  })
})

describe('a link that we have not made', () => {
  const expectForged = async (path: string, from: string) => {
    for (const init of [{}, { form: { name: 'Ada' } }]) {
      const { status, text } = await send(api, path, { ...init, from })
      expect([path, status, readText(text)]).toEqual([path, 404, expect.stringContaining('This link is not valid')])
    }
  }

  it('is not found: cut, made longer, written otherwise, under another key, or with a byte changed', async () => {
    const { path, id } = await open()
    const token = path.slice('/ack/'.length)
    const { since } = tokens.read(token)!
    const foreign = createIncidentTokens(Buffer.alloc(32, 8), [SECRET_KEY]).sign({ checkId: id, since })
    const changed = Array.from(Buffer.from(token, 'base64url'), (_, place) => {
      const bytes = Buffer.from(token, 'base64url')
      bytes[place]! ^= 1
      return bytes.toString('base64url')
    })
    const bad = ['', token.slice(1), token.slice(0, -1), `${token}A`, `${token}/`, `${token}%20`, foreign, ...changed]
    for (const [place, one] of bad.entries()) await expectForged(`/ack/${one}`, `10.0.${place}.1`)
    expect(await acknowledgedOf(api, id)).toBeNull()
    expect((await send(api, `${path}?utm_source=mail`)).status).toBe(200)
  })

  it('works when it was signed under a former SECRET_KEY that is known', async () => {
    const former = Buffer.alloc(32, 9)
    await using renewed = await startTestApi({ incidentTokens: createIncidentTokens(SECRET_KEY, [former]) })
    const { id, path } = await takeDown(renewed)
    const { since } = tokens.read(path.slice('/ack/'.length))!
    const old = createIncidentTokens(former, []).sign({ checkId: id, since })
    expect((await send(renewed, `/ack/${old}`, { form: {} })).status).toBe(200)
    expect((await send(api, `/ack/${old}`, { from: '10.1.0.1' })).status).toBe(404)
  })
})

describe('a name', () => {
  it.each([
    ['<script>alert("1")</script>\'&', '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;'],
    ['two\r\nlines\u2028\u202eevil\u0000', 'two lines evil'],
    ['x'.repeat(100), 'x'.repeat(100)],
    ['x'.repeat(101), 'x'.repeat(100)],
    ['\u{1f98a}'.repeat(51), '\u{1f98a}'.repeat(50)],
  ])('%j is text of one line', async (name, shown) => {
    const { path, id } = await open()
    const { text } = await send(api, path, { form: { name } })
    expect(text).toContain(`Acknowledged by <bdi>${shown}</bdi>`)
    const { entries } = (await api.client.get(`/audit?target_id=${id}`)).body
    expect(entries[0].actor.name).toBe((await acknowledgedOf(api, id)).by.name)
  })

  it.each(['  \t ', '\u200b', '\u0000'])('%j is none', async (name) => {
    const { path, id } = await open()
    await send(api, path, { form: { name } })
    expect(await acknowledgedOf(api, id)).toMatchObject({ by: { name: null } })
  })

  it('of a check is text, too', async () => {
    const { path } = await takeDown(api, { name: '<b>"\u202eNightly' })
    const { text } = await send(api, path)
    expect(text).toContain('<h1><bdi>&lt;b&gt;&quot;Nightly</bdi> is down</h1>')
    expect(text).toContain('<title>&lt;b&gt;&quot;Nightly is down</title>')
  })
})
