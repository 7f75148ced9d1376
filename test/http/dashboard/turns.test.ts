import { describe, expect, it } from 'vitest'
import { createTurns } from '../../../src/http/dashboard/turns.ts'
import { startTestApi } from '../../support/service.ts'
import { anAdmin } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import { createVisitor, visit } from '../../support/visitor.ts'
import { createHeldTurns } from './held-turns.ts'

const { turns, held, hold, release } = createHeldTurns()

const api = use(() => startTestApi({ turns }))
const visitor = use(() => visit(api))

describe('pages', () => {
  it('of one user wait behind each other, not before those of other users', async () => {
    const turns = createTurns()
    const read: string[] = []
    const { promise: first, resolve: end } = Promise.withResolvers<void>()
    const readAs = (name: string, end: Promise<void> = Promise.resolve()) =>
      turns.read({ ...anAdmin('one'), id: name, sessionId: name }, () => {
        read.push(name)
        return end
      })
    const pages = [readAs('many', first)]
    for (let page = 0; page < 20; page += 1) pages.push(readAs('many'))
    pages.push(readAs('other'))
    await eventually('one page is read', () => read.length === 1)
    end()
    await Promise.all(pages)
    expect(read).toHaveLength(22)
    expect(read.slice(0, 3)).toContain('other')
  })

  it('of an organization are read one at a time, and changes do not wait for them', async () => {
    hold()
    const pages = ['/checks', '/channels', '/checks?sort=name'].map((path) => visitor.get(path))
    await eventually('one turn is taken', () => held() === 1)
    expect((await visitor.post('/checks/no-such/delete')).status).toBe(404)
    expect(held()).toBe(1)
    release()
    expect((await Promise.all(pages)).map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it('and changes: an organization makes four at a time, and others pass', async () => {
    const turns = createTurns(100)
    const { promise: end, resolve: letAll } = Promise.withResolvers<void>()
    const changeIn = (organization: string, work: Promise<void> = Promise.resolve()) =>
      turns.change({ ...anAdmin(organization), sessionId: 'x' }, () => work)
    const changing = Array.from({ length: 4 }, () => changeIn('one', end))
    await expect(changeIn('one')).rejects.toMatchObject({
      code: 'unavailable',
      message: 'too many changes are being made at the moment',
      retryAfterSeconds: 5,
    })
    await changeIn('two')
    letAll()
    await Promise.all(changing)
    await changeIn('one')
  })

  it('that wait too long say so, and load again by themselves', async () => {
    const hasty = createHeldTurns(100)
    await using service = await startTestApi({ turns: hasty.turns })
    const own = await visit(service)
    hasty.hold()
    const first = own.get('/checks')
    await eventually('one turn is taken', () => hasty.held() === 1)
    const { status, headers, text } = await own.get('/checks')
    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
    expect(text).toContain('Too many pages are being read at the moment. This page loads again by itself')
    expect(text).toMatch(/<meta http-equiv="refresh" content="\d+">/)
    hasty.release()
    expect((await first).status).toBe(200)
    expect((await own.get('/checks')).status).toBe(200)
  })
})

describe('too many requests', () => {
  it('of one user in a minute get 429 with the time to wait, on each page; other users and files pass', async () => {
    await using small = await startTestApi({ mostRequests: 3 })
    const [one, other] = [await visit(small), await visit(small, 'read')]
    for (const path of ['/checks', '/nothing']) await one.get(path)
    expect((await one.post('/checks/no-such/delete')).status).toBe(404)
    for (const path of ['/checks', '/live', '/login']) {
      const { status, headers, text } = await one.get(path)
      expect([status, headers.get('content-type')], path).toEqual([429, 'text/html; charset=utf-8'])
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      expect(text).toContain('Your account has made more than 3 requests in a minute: try again in ')
    }
    expect((await other.get('/checks')).status).toBe(200)
    const [, file] = /href="(\/assets\/[^"]+)"/.exec(
      (await createVisitor(new URL(small.url).origin).get('/login')).text,
    )!
    expect((await one.get(file!)).status).toBe(200)
    small.moveClock(120_000)
    expect((await one.get('/checks')).status).toBe(200)
  })

  it('with cookies that have no session get 429 after 300 in a minute; a session passes, and the log-in', async () => {
    const own = await startTestApi()
    await using _ = own
    const known = await visit(own)
    const at = new URL(own.url).origin
    const guess = createVisitor(at)
    guess.cookies.set('heartbeat_session', 'x'.repeat(43))
    const malformed = createVisitor(at)
    malformed.cookies.set('heartbeat_session', 'x')
    const codes: number[] = []
    for (let round = 0; round < 10; round += 1)
      codes.push(
        ...(await Promise.all(Array.from({ length: 31 }, () => guess.get('/checks')))).map(({ status }) => status),
      )
    expect([303, 429].map((code) => codes.filter((one) => one === code).length)).toEqual([300, 10])
    const { headers, text } = await guess.get('/live')
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    expect(text).toContain('More than 300 requests with a wrong credential in a minute from this address')
    expect((await malformed.get('/checks')).status).toBe(303)
    expect((await known.get('/checks')).status).toBe(200)
    expect((await guess.get('/login')).status).toBe(200)
    expect((await guess.post('/login', own.admin)).status).toBe(303)
  })
})
