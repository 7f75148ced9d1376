import { afterEach, beforeAll, expect, it } from 'vitest'
import { AppError, unavailable } from '../../../src/domain/errors.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { createVisitor, type Visitor, visit } from '../../support/visitor.ts'

let origin: string
/** What every statement fails with meanwhile. */
let fault: Error | null = null

const api = use(startTestApi)
beforeAll(() => {
  origin = new URL(api.url).origin
})
const visitor = use(() => visit(api))
beforeAll(() => {
  const { database } = api.context
  for (const name of ['query', 'transaction'] as const) {
    const works = database[name] as (...args: unknown[]) => unknown
    const mayFail = (...args: unknown[]) => (fault === null ? works(...args) : Promise.reject(fault))
    Object.assign(database, { [name]: mayFail })
  }
})
afterEach(() => {
  fault = null
})

const OUTAGE = unavailable(new Error('connect ECONNREFUSED'))
const BUSY = new AppError('unavailable', 'too many log-ins at the moment; try again shortly')
/** Where the only link or button of the page's content leads. */
const linkOf = (text: string) => /<main.*<a class="button" href="([^"]*)"/s.exec(text)?.[1]

it('without a database a page says so, loads again by itself, and keeps what was typed', async () => {
  fault = OUTAGE
  for (const one of [visitor, withUnknownCookie()]) {
    const { status, text, headers } = await one.get('/checks?status=down')
    expect([status, headers.get('retry-after'), headers.get('cache-control')]).toEqual([503, '5', 'no-store'])
    expect(text).toContain('<h1>The database does not respond</h1>')
    expect(text).toContain('This page loads again by itself')
    expect(text).toContain('data-live="retry" data-form="keep"')
    expect(linkOf(text)).toBe('')
    expect(text).not.toContain('ECONNREFUSED')
  }
  fault = null
  const { status, text } = await visitor.get('/checks')
  expect(status).toBe(200)
  expect(text).not.toContain('data-form')
})

it('browsers without scripts come back at different times', async () => {
  fault = OUTAGE
  const pages = await Promise.all(Array.from({ length: 30 }, () => visitor.get('/checks')))
  const times = pages.map(({ text }) => Number(/http-equiv="refresh" content="(\d+)"/.exec(text)![1]))
  expect(Math.min(...times)).toBeGreaterThanOrEqual(5)
  expect(Math.max(...times)).toBeLessThanOrEqual(10)
  expect(new Set(times).size).toBeGreaterThan(1)
})

it('a form is not loaded again: its page is a link away', async () => {
  const { id } = await api.addCheck({ name: 'Nightly' })
  fault = OUTAGE
  for (const [referer, back] of [
    [`${origin}/checks/${id}?tab=a`, `/checks/${id}?tab=a`],
    ['https://evil.example.com/checks', '/checks'],
    [`${origin}//evil.example.com`, '/checks'],
    ['', '/checks'],
  ] as const) {
    const { status, text } = await visitor.post(`/checks/${id}/pause`, {}, referer === '' ? {} : { referer })
    expect(status).toBe(503)
    expect(text).toContain('<h1>The database does not respond</h1>')
    expect(text).toContain('Your change was not confirmed: go back, look whether it was made')
    expect(text).toContain('data-live="none" data-form="keep"')
    expect(text).not.toMatch(/http-equiv="refresh"|loads again/)
    expect(linkOf(text), referer).toBe(back)
  }
  fault = null
  expect((await visitor.post(`/checks/${id}/pause`)).status).toBe(303)
})

it('the log-in says so too, and works again with the database', async () => {
  const logIn = (one: Visitor) =>
    one.post('/login', { ...api.admin, next: '/channels' }, { referer: `${origin}/login` })
  fault = OUTAGE
  const one = createVisitor(origin)
  const { status, text } = await logIn(one)
  expect(status).toBe(503)
  expect(text).toContain('<h1>The database does not respond</h1>')
  expect(linkOf(text)).toBe('/login')
  fault = null
  expect((await logIn(one)).location).toBe('/channels')
})

it('other reasons to wait are not blamed on the database', async () => {
  fault = BUSY
  const { status, text } = await createVisitor(origin).post('/login', api.admin, {
    referer: `${origin}/login?next=%2F`,
  })
  expect(status).toBe(503)
  expect(text).toContain('<h1>Please wait a moment</h1>')
  expect(text).toContain(
    'Too many log-ins at the moment; try again shortly. Nothing was changed: go back and try again.',
  )
  expect(text).not.toMatch(/database/i)
  expect(linkOf(text)).toBe('/login?next=%2F')
  expect((await visitor.get('/checks')).text).toContain('Too many log-ins at the moment; try again shortly. This page')
})

it('every page of an error keeps what was typed', async () => {
  expect((await visitor.get('/checks/no-such')).text).toContain(
    '<main id="main" class="container" data-live="none" data-form="keep">',
  )
})

/** With a cookie that leads to the database: who it is is not known. */
function withUnknownCookie(): Visitor {
  const other = createVisitor(origin)
  other.cookies.set('heartbeat_session', 'x'.repeat(43))
  return other
}
