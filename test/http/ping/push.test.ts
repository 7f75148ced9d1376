/** The URLs of Uptime Kuma's push monitors (design, section 3.3). */

import { beforeEach, describe, expect, it } from 'vitest'
import { exchange, writeHead, writePost } from '../../support/http.ts'
import { addPushToken, usePings } from './fixture.ts'

let token: string

const { app, check, stored } = usePings()
beforeEach(async () => {
  token = await addPushToken(app, check.id)
})

const send = async (method: string, path: string) => exchange(app.pingUrl, writeHead(method, path))
const push = (query = '') => send('GET', `/api/push/${token}${query}`)

const PUSHED = { status: 200, text: '{"ok":true}' }

describe('a push of Uptime Kuma', () => {
  it.each([
    ['', 'success', null, null],
    ['?status=up&msg=OK&ping=123', 'success', 123, null],
    ['?status=down&msg=disk%20full&ping=7', 'fail', 7, 'disk full'],
    ['?status=start', 'start', null, null],
  ])('%j is stored as %s', async (query, type, durationMs, text) => {
    const answer = await push(query)
    expect(answer).toMatchObject(PUSHED)
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'access-control-allow-origin': '*',
    })
    expect(answer.headers).not.toHaveProperty('ping-warning')
    const body = text === null ? null : Buffer.from(text)
    expect(await stored()).toMatchObject([{ type, durationMs, body }])
  })

  it.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'])('may be a %s, as there', async (method) => {
    expect(await send(method, `/api/push/${token}/?status=up`)).toMatchObject({
      ...PUSHED,
      ...(method === 'HEAD' ? { text: '' } : {}),
    })
    expect(await stored()).toHaveLength(1)
  })

  it('of a word that is not known is a failure that says so', async () => {
    const { status, headers } = await push('?status=pending')
    expect([status, headers['ping-warning']]).toEqual([200, expect.stringContaining('counts as a failure')])
    expect(await stored()).toMatchObject([{ type: 'fail', body: Buffer.from('unknown status "pending"') }])
  })

  it('is stored without a duration that is none, with a warning', async () => {
    const { status, headers } = await push('?status=up&ping=soon')
    expect([status, headers['ping-warning']]).toEqual([200, expect.stringContaining('duration ignored')])
    expect(await stored()).toMatchObject([{ type: 'success', durationMs: null }])
  })

  it('keeps the end of a long text', async () => {
    expect(await push(`?status=down&msg=${'x'.repeat(11_000)}y`)).toMatchObject(PUSHED)
    expect((await stored())[0]!.body!.toString()).toBe(`${'x'.repeat(10_239)}y`)
    expect(await exchange(app.pingUrl, writePost(`/api/push/${token}`, 'x'.repeat(20_000)))).toMatchObject({
      status: 413,
      text: expect.stringMatching(/^\{"ok":false,"msg":"body too large/),
    })
    expect(await stored()).toHaveLength(2)
  })

  it('of an unknown token is rejected, also of a check that is gone', async () => {
    const rejected = { status: 404, text: '{"ok":false,"msg":"no monitor has this push token"}' }
    for (const path of [
      '/api/push/',
      '/api/push/unknown',
      `/api/push/${'x'.repeat(65)}`,
      '/api/push/%00',
      `/api/push/${token}/x`,
      `/api/push/${check.publicId}`,
    ])
      expect(await send('GET', path), path).toMatchObject(rejected)
    expect(await send('GET', `/ping/${token}`)).toMatchObject({ status: 404, text: 'no such check' })
    expect(await stored()).toEqual([])
    expect(await push()).toMatchObject(PUSHED)
    await app.client.delete(`/checks/${check.id}`)
    expect(await push()).toMatchObject(rejected)
  })
})
