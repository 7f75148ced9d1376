import { EventEmitter, once } from 'node:events'
import type { Context } from 'koa'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { ChangeHub, Watcher } from '../../../src/checks/watch-changes.ts'
import { createLive } from '../../../src/http/dashboard/live.ts'
import { STREAMS_PER_SESSION, STREAMS_PER_USER } from '../../../src/http/limits.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { removeUser } from '../../../src/tenancy/users.ts'
import { HOUR } from '../../support/builders.ts'
import { type EventStream, openEventStream } from '../../support/event-stream.ts'
import { openConnection } from '../../support/http.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { startTestApi } from '../../support/service.ts'
import { anAdmin } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'
import { createVisitor, type Visitor, visit } from '../../support/visitor.ts'

let origin: string
const manual = createManualClock()
const streams: EventStream[] = []

const api = use(() => startTestApi({ clock: manual }))
beforeAll(async () => {
  origin = new URL(api.url).origin
})
afterEach(async () => {
  await Promise.all(streams.splice(0).map((stream) => stream[Symbol.asyncDispose]()))
  await eventually('no stream is open', () => api.live.count() === 0)
})

/** As an open page does it: the time of the page is a little past, so that it hears nothing of what the tests before did. */
async function openLive(
  visitor: Visitor,
  query = `?since=${new Date(api.context.clock.now() + 60_000).toISOString()}`,
) {
  const stream = await openEventStream(origin, `/live${query}`, visitor)
  streams.push(stream)
  return stream
}

/** Those of the streams, of the hub, and of its connection: each that does not sleep waits for the database. */
const LOOPS = 4

/** Lets time pass, in small steps, until it is so. A step begins when the work of the one before has ended, however long a busy machine takes. */
const untilAfter = (look: () => boolean, withinMs = 60_000) => {
  const giveUpAt = manual.now() + withinMs
  const step = async () => {
    if (look()) return true
    if (manual.wakeTimes().length < LOOPS) return false
    if (manual.now() > giveUpAt) throw new Error(`not within ${withinMs} ms of the clock: ${look}`)
    await manual.advance(100)
    return false
  }
  return eventually(`after a while, ${look}`, step, { retryErrors: false })
}

const changedIn = ({ events }: EventStream) =>
  events.filter(({ event }) => event === 'change').flatMap(({ data }) => data.checks as string[])

describe('a stream', () => {
  it('needs a session', async () => {
    const { status, location } = await createVisitor(origin).get('/live')
    expect([status, location]).toEqual([303, '/login?next=%2Flive'])
    expect(api.live.count()).toBe(0)
  })

  it('begins with the time of the server and how soon to connect again, and nothing keeps it from arriving at once', async () => {
    const before = api.context.clock.now()
    const { status, headers, events, text } = await openLive(await visit(api, 'read'))
    expect(status).toBe(200)
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-content-type-options': 'nosniff',
    })
    expect(headers.get('content-encoding')).toBeNull()
    await eventually('the first event', () => events.length > 0)
    expect(text()).toMatch(/^retry: 3000\n/)
    expect(events[0]!.event).toBe('hello')
    expect(Date.parse(events[0]!.data.now)).toBeGreaterThanOrEqual(Math.floor(before))
  })

  it('names a check that flips to all of its organization and to no other', async () => {
    const check = await api.addCheck({ period_seconds: 60, grace_seconds: 600 })
    const [admin, reader] = [await openLive(await visit(api)), await openLive(await visit(api, 'read'))]
    const other = await openLive(await visit({ ...api, ...(await api.addOrganization()) }, 'admin'))
    await untilAfter(() => [admin, reader, other].every(({ events }) => events.some(({ event }) => event === 'reload')))
    await api.ping(check.public_id)
    for (const stream of [admin, reader]) await untilAfter(() => changedIn(stream).length > 0)
    expect([changedIn(admin), changedIn(reader)]).toEqual([[check.id], [check.id]])
    expect(changedIn(other)).toEqual([])
  })

  it('of one check names its pings', async () => {
    const [check, other] = [await api.addCheck({ name: 'This one' }), await api.addCheck({ name: 'Another one' })]
    await api.ping(check.public_id)
    const since = new Date(api.context.clock.now() + 2_000).toISOString()
    const stream = await openLive(await visit(api, 'read'), `?since=${since}&check=${check.id.toUpperCase()}`)
    await untilAfter(() => stream.events.some(({ event }) => event === 'reload'))
    await api.ping(other.public_id, { type: 'fail' })
    await api.ping(check.public_id)
    await untilAfter(() => changedIn(stream).length > 0)
    expect(changedIn(stream)).toEqual([check.id])
  })

  it('says at once that what the page shows is older than the last change', async () => {
    const keeper = await openLive(await visit(api))
    await eventually('the first event', () => keeper.events.length > 0)
    const check = await api.addCheck()
    await untilAfter(() => changedIn(keeper).includes(check.id))
    const read = new Date(api.context.clock.now() - 5_000).toISOString()
    const { events } = await openLive(await visit(api), `?since=${read}`)
    await eventually('two events', () => events.length >= 2)
    expect(events.map(({ event }) => event).slice(0, 2)).toEqual(['hello', 'reload'])
  })

  it.each(['?since=yesterday&check=1', '?check=../../x&check=2', '?since=&since='])('takes %s', async (query) => {
    const { status, events } = await openLive(await visit(api), query)
    expect(status).toBe(200)
    await eventually('the first event', () => events.length > 0)
  })

  it('sends a comment every 20 seconds, so that proxies keep it', async () => {
    const { text } = await openLive(await visit(api))
    const comments = () =>
      text()
        .split('\n\n')
        .filter((part) => part === ':').length
    await untilAfter(() => comments() === 1, 20_000)
    await untilAfter(() => comments() === 2, 20_100)
  })

  it('is empty for HEAD', async () => {
    const visitor = await visit(api)
    const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const { status, headers } = await fetch(`${origin}/live`, { method: 'HEAD', headers: { cookie } })
    expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(api.live.count()).toBe(0)
  })
})

describe('a stream ends', () => {
  async function expectEnd(stream: EventStream): Promise<void> {
    await untilAfter(stream.isEnded, 5_000)
    expect(stream.events.at(-1)).toEqual({ event: 'end', data: { reason: 'session' } })
  }

  it('within five seconds of a log-out, and others go on', async () => {
    const [visitor, other] = [await visit(api), await visit(api)]
    const [first, second, kept] = [await openLive(visitor), await openLive(visitor), await openLive(other)]
    await untilAfter(() => kept.events.length > 0)
    await visitor.post('/logout')
    await expectEnd(first)
    await expectEnd(second)
    await manual.advance(5_000)
    expect([kept.isEnded(), api.live.count()]).toEqual([false, 1])
  })

  it('within five seconds of the removal of its user, on any replica', async () => {
    const visitor = await visit(api, 'read')
    const stream = await openLive(visitor)
    const { rows } = await api.database.query<{ id: string }>(
      "select id from users where scope = 'read' order by created_at desc limit 1",
    )
    await removeUser(api.context, anAdmin(api.organizationId), rows[0]!.id)
    await expectEnd(stream)
  })

  it('within five seconds of 12 hours without use; an open page that is refreshed by its script is no use', async () => {
    const visitor = await visit(api)
    const stream = await openLive(visitor)
    for (let hours = 0; hours < 12; hours += 4) {
      await manual.advance(5_000)
      expect(stream.isEnded()).toBe(false)
      expect((await visitor.get('/checks', { 'x-refresh': new Date(0).toISOString() })).status).toBe(200)
      api.moveClock(4 * HOUR)
    }
    await expectEnd(stream)
    expect((await visitor.get('/checks')).status).toBe(303)
  })

  it('when its session has too many, the oldest first', async () => {
    const visitor = await visit(api)
    const opened: EventStream[] = []
    for (let i = 0; i < STREAMS_PER_SESSION; i += 1) opened.push(await openLive(visitor))
    const other = await openLive(await visit(api))
    expect(api.live.count()).toBe(STREAMS_PER_SESSION + 1)
    opened.push(await openLive(visitor))
    await eventually('the oldest stream has ended', opened[0]!.isEnded)
    expect(opened[0]!.events.at(-1)).toEqual({ event: 'end', data: { reason: 'many' } })
    expect(api.live.count()).toBe(STREAMS_PER_SESSION + 1)
    expect([...opened.slice(1), other].filter((stream) => stream.isEnded())).toEqual([])
  })

  it('when its client leaves', async () => {
    const stream = await openLive(await visit(api))
    expect(api.live.count()).toBe(1)
    await stream[Symbol.asyncDispose]()
    await eventually('no stream is open', () => api.live.count() === 0)
  })
})

/** Streams whose hub does what the test says. */
function createStreams(mostStreams?: number) {
  const watchers = new Set<Watcher>()
  const changes: ChangeHub = {
    watch(watcher) {
      watchers.add(watcher)
      return () => watchers.delete(watcher)
    },
    look: async () => {},
    stop: async () => {},
  }
  const live = createLive({
    context: { clock: systemClock, database: undefined as never },
    changes,
    clock: createManualClock(),
    onProblem: () => {},
    ...(mostStreams === undefined ? {} : { mostStreams }),
  })
  return { watchers, live }
}

/** A service with such streams. */
async function startWithHub(mostStreams?: number) {
  const streams = createStreams(mostStreams)
  const own = await startTestApi({ live: streams.live })
  return { ...streams, own, [Symbol.asyncDispose]: own.close }
}

/** A stream of a session without a connection: how it ended, if it did. `gone`: what is destroyed before. */
function openUnconnected(
  live: ReturnType<typeof createLive>,
  { id = 'ann', sessionId = id, gone }: { id?: string; sessionId?: string; gone?: 'response' | 'socket' },
) {
  const socket = Object.assign(new EventEmitter(), { destroyed: gone === 'socket' })
  const written: string[] = []
  const response = Object.assign(new EventEmitter(), {
    destroyed: gone === 'response',
    writeHead() {},
    write: (bytes: Buffer) => written.push(bytes.toString()),
    end() {},
  })
  const ctx = { method: 'GET', query: {}, req: { socket }, res: response } as unknown as Context
  live.open(ctx, { ...anAdmin('organization'), id, sessionId })
  return { ctx, response, isEnded: () => written.at(-1)!.includes('event: end') }
}

it.each(['response', 'socket'] as const)(
  'a client that left while its session was looked up is not counted: its %s is gone',
  (gone) => {
    const { live, watchers } = createStreams()
    const { ctx } = openUnconnected(live, { gone })
    expect([ctx.respond, live.count(), watchers.size]).toEqual([false, 0, 0])
  },
)

it('a client whose connection broke unseen is left at the next message', () => {
  const { live, watchers } = createStreams()
  const { response } = openUnconnected(live, {})
  expect([live.count(), watchers.size]).toEqual([1, 1])
  response.destroyed = true
  for (const { onChange } of watchers) onChange(null)
  expect([live.count(), watchers.size]).toEqual([0, 0])
})

it('a client that does not read is disconnected, and nothing piles up for it', async () => {
  await using hub = await startWithHub()
  const { watchers, live, own } = hub
  const visitor = await visit(own)
  const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const { socket } = openConnection(own.url)
  await once(socket, 'connect')
  socket.pause()
  socket.write(`GET /live HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`)
  await using reader = await openEventStream(new URL(own.url).origin, '/live', visitor)
  await eventually('two streams are open', () => watchers.size === 2)
  const ids = Array.from({ length: 100 }, () => crypto.randomUUID())
  // The kernel takes some megabytes before anything waits here.
  let rounds = 0
  while (watchers.size === 2) {
    for (let i = 0; i < 10; i += 1) for (const { onChange } of watchers) onChange(ids)
    rounds += 1
    if (rounds > 500) throw new Error('a client that reads nothing is still connected')
    const count = rounds * 10
    await eventually('the reader has the next event', () => reader.events.length > count)
  }
  expect(live.count()).toBe(1)
  expect(reader.isEnded()).toBe(false)
  socket.destroy()
})

it('a process has no more streams than its limit: the oldest ends', async () => {
  await using hub = await startWithHub(2)
  const { live, own } = hub
  const at = new URL(own.url).origin
  await using first = await openEventStream(at, '/live', await visit(own))
  await using second = await openEventStream(at, '/live', await visit(own))
  await using third = await openEventStream(at, '/live', await visit(own))
  await eventually('the first stream has ended', first.isEnded)
  expect([live.count(), second.isEnded(), third.isEnded()]).toEqual([2, false, false])
})

it('a stop ends all streams at once, and there are no new ones', async () => {
  await using hub = await startWithHub()
  const { live, watchers, own } = hub
  const visitor = await visit(own)
  await using stream = await openEventStream(new URL(own.url).origin, '/live', visitor)
  await live.stop()
  await eventually('the stream has ended', stream.isEnded)
  expect(watchers.size).toBe(0)
  const { status, headers } = await visitor.get('/live')
  expect([status, headers.get('retry-after')]).toEqual([503, '1'])
})

describe('pages of a list that are open', () => {
  const since = (ms: number) => ({ 'x-refresh': new Date(api.context.clock.now() + ms).toISOString() })

  it('share what is read again, without the name of a user; another scope, organization, filter and an older read do not', async () => {
    const [first, second, reader] = [await visit(api), await visit(api), await visit(api, 'read')]
    const other = await visit({ ...api, ...(await api.addOrganization()) }, 'admin')
    const before = since(0)
    const { text, headers } = await first.get('/checks', before)
    expect(text).toContain('<main')
    expect(text).not.toContain(api.admin.email)
    expect(headers.get('content-encoding')).toMatch(/^(?:br|gzip)$/)
    expect((await second.get('/checks', before)).text).toBe(text)
    expect((await reader.get('/checks', before)).text).not.toContain('New check')
    expect((await other.get('/checks', before)).text).not.toBe(text)
    expect((await first.get('/checks?q=x', before)).text).not.toBe(text)
    const added = await api.addCheck({ name: 'Added a moment ago' })
    expect((await second.get('/checks', since(0))).text).toContain(added.id)
    expect((await first.get('/checks')).text).toContain(api.admin.email)
  })

  it('are sent to the log-in when the session has ended, though others have just read the list', async () => {
    const [kept, ended] = [await visit(api), await visit(api)]
    const before = since(0)
    await kept.get('/checks', before)
    await ended.post('/logout')
    expect((await ended.get('/checks', before)).status).toBe(303)
  })
})

it('a user has a hundred streams at most, however many sessions: the oldest ends', () => {
  const { live } = createStreams()
  const open = (place: number) => openUnconnected(live, { sessionId: `ann-${place % 10}` })
  const opened = Array.from({ length: STREAMS_PER_USER }, (_, place) => open(place))
  const other = openUnconnected(live, { id: 'bob' })
  expect(opened.filter((stream) => stream.isEnded())).toEqual([])
  open(STREAMS_PER_USER)
  expect([...opened, other].flatMap((stream, place) => (stream.isEnded() ? [place] : []))).toEqual([0])
  expect(live.count()).toBe(STREAMS_PER_USER + 1)
})

it('above the limit of all streams the user with the most gives one up, and no other', () => {
  const { live } = createStreams(20)
  const bob = openUnconnected(live, { id: 'bob' })
  const opened = Array.from({ length: 60 }, (_, place) => openUnconnected(live, { sessionId: `ann-${place % 7}` }))
  expect(bob.isEnded()).toBe(false)
  expect(opened.filter((stream) => !stream.isEnded())).toEqual(opened.slice(-19))
  openUnconnected(live, { id: 'cleo' })
  expect([bob, ...opened.slice(-19)].flatMap((stream, place) => (stream.isEnded() ? [place] : []))).toEqual([1])
  expect(live.count()).toBe(20)
})
