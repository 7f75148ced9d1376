/** What can go wrong between us and a service meets every kind of channel: its answers, its address, and our own end. */

import type { LookupFunction } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { KINDS } from '../../../src/channels/kinds/index.ts'
import { CHANNEL_KINDS } from '../../../src/domain/channel.ts'
import { CLAIM_MS } from '../../../src/domain/retry.ts'
import type { Statement } from '../../../src/store/postgres/database.ts'
import { createAuthority, signServer } from '../../../tools/cluster/control-plane-certificates.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import { startReceiver } from '../../support/receiver.ts'
import { FAULTS } from '../../support/receivers/faults.ts'
import { startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { createFixture, type DeliveryRow, type Fixture } from './fixture.ts'
import { useKind } from './kind-stage.ts'

const stack = new AsyncDisposableStack()
let fixture: Fixture
beforeAll(async () => {
  fixture = stack.use(await createFixture())
})
afterAll(() => stack.disposeAsync())
beforeEach(() => fixture.clear())

const authority = createAuthority('test')
const ofAnother = signServer(authority, ['other.example'])
/** Long enough for an attempt that fails at once, on a machine that is busy, to fail by itself. */
const NEVER_MS = 300
const noAddress: LookupFunction = (name, _, callback) =>
  callback(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: 'ENOTFOUND' }), [])

interface Address {
  /** Starts what listens there. */
  open(): Promise<{ readonly http: string; readonly smtp: string | null }>
  readonly with?: Parameters<ReturnType<typeof useKind>['createOutbox']>[0]
  readonly status: 0 | 2
  readonly says: RegExp
}
/** `smtp` is null where the rule is about addresses that users choose; the operator chooses that of the mail server. */
const ADDRESSES: Readonly<Record<string, Address>> = {
  'refuses connections': {
    async open() {
      const receiver = await startReceiver()
      await receiver.close()
      return { http: receiver.url, smtp: `smtp://127.0.0.1:${receiver.port}` }
    },
    status: 0,
    says: /refused the connection/,
  },
  'has the certificate of an authority that is not known': {
    open: openWithTls,
    status: 0,
    says: /no known authority has signed/,
  },
  'has the certificate of another name': {
    open: openWithTls,
    with: { ca: authority.certificate },
    status: 0,
    says: /certificate for another name/,
  },
  'has a name without an address': {
    open: async () => ({ http: 'http://nowhere.example', smtp: null }),
    with: { client: { lookup: noAddress } },
    status: 0,
    says: /nowhere\.example has no address/,
  },
  'is one that channels may not reach': {
    async open() {
      return { http: stack.use(await startReceiver()).url, smtp: null }
    },
    with: { client: { allowedTargets: [] } },
    status: 2,
    says: /loopback address, and channels reach public addresses only/,
  },
}

async function openWithTls() {
  const receiver = stack.use(await startReceiver({ certified: ofAnother }))
  const mails = stack.use(await startSmtpReceiver({ certified: ofAnother, isSecure: true }))
  return { http: receiver.url, smtp: `smtps://127.0.0.1:${mails.port}` }
}

describe.each(CHANNEL_KINDS)('a channel of the kind %s', (kind) => {
  const stage = useKind(kind, () => fixture, stack)
  const { service, later } = stage
  const rows = () => fixture.deliveries()
  const addEvent = (checkKey: number, name = `Job ${checkKey}`) =>
    fixture.addEvent(stage.channelId(), checkKey, { check: { id: `check-${checkKey}`, slug: `job-${checkKey}`, name } })

  /** Nothing that is stored or logged has a secret, and no sender threw. */
  function expectSafe(
    { reports, bugs }: Pick<ReturnType<typeof stage.outbox>, 'reports' | 'bugs'>,
    stored: DeliveryRow[],
  ) {
    const seen = JSON.stringify([stored, reports.map(({ outcome }) => outcome)])
    for (const secret of ['s3cret', Buffer.from('robot:s3cret').toString('base64')]) expect(seen).not.toContain(secret)
    expect(bugs).toEqual([])
  }

  const faultsOf = (outcome: string) => Object.keys(FAULTS).filter((name) => FAULTS[name]!.outcome === outcome)

  it.each(faultsOf('retried'))('that %s, is tried again, and loses nothing and no order', async (name) => {
    const { says } = FAULTS[name]!
    const outbox = stage.createOutbox({ outbox: { timeoutMs: name === 'never answers' ? NEVER_MS : 10_000 } })
    service().become(FAULTS[name]!)
    await addEvent(1)
    await later(SECOND, outbox)
    await addEvent(1, 'Renamed')
    await outbox.drain()
    const waiting = await rows()
    expect(waiting).toMatchObject([
      { status: 0, attempts: 1, last_error: expect.stringMatching(says!) },
      { status: 0, attempts: 0 },
    ])
    expectSafe(outbox, waiting)
    service().become('well')
    await later(MINUTE, outbox)
    expect(await rows()).toMatchObject([
      { status: 1, attempts: 2, last_error: null },
      { status: 1, attempts: 1 },
    ])
    expect(service().accepted).toHaveLength(2)
    expect(service().accepted[0]).not.toContain('Renamed')
    expect(service().accepted[1]).toContain('Renamed')
  })

  it.each(faultsOf('final'))('that %s, is not tried again, and is sent what follows', async (name) => {
    service().become(FAULTS[name]!)
    await addEvent(1)
    await later(SECOND)
    await addEvent(1)
    await later(SECOND)
    const failed = await rows()
    const last_error = expect.stringMatching(FAULTS[name]!.says!)
    expect(failed).toMatchObject([
      { status: 2, attempts: 1, last_error },
      { status: 2, attempts: 1, last_error },
    ])
    expectSafe(stage.outbox(), failed)
    expect(service().requests()).toBe(2)
    service().become('well')
    await addEvent(1)
    await stage.outbox().drain()
    expect((await rows()).map(({ status }) => status)).toEqual([2, 2, 1])
    expect(service().accepted).toHaveLength(1)
  })

  it.each(faultsOf('delivered'))('that %s, has the message', async (name) => {
    if (service().settingsAt === undefined) return expect(FAULTS[name]!.smtp).toBeNull()
    service().become(FAULTS[name]!)
    await addEvent(1)
    await stage.outbox().drain()
    expect(await rows()).toMatchObject([{ status: 1, attempts: 1 }])
  })

  it.each(Object.keys(ADDRESSES))('whose address %s, says so', async (name) => {
    const { open, with: options, status, says } = ADDRESSES[name]!
    const { http, smtp } = await open()
    const { settingsAt } = service()
    if (settingsAt === undefined && smtp === null) return expect(kind).toBe('email')
    const outbox = stage.createOutbox({ ...options, ...(smtp === null ? {} : { smtpUrl: smtp }) })
    await fixture.clear()
    const settings = settingsAt?.(http) ?? service().settings
    await fixture.addEvent(await fixture.addChannel({ settings }), 1)
    await outbox.drain()
    const stored = await rows()
    expect(stored).toMatchObject([{ status, attempts: 1, last_error: expect.stringMatching(says) }])
    expectSafe(outbox, stored)
    expect(service().requests()).toBe(0)
  })

  it.each([
    ['in seconds', () => '77'],
    ['as a date', () => new Date(fixture.clock.now() + 77 * SECOND).toUTCString()],
  ])('waits as long as Retry-After says %s', async (_, retryAfter) => {
    const { limit, become } = service()
    if (limit === undefined) return expect(kind).toBe('email')
    // Dates have no milliseconds.
    await fixture.clock.advance(SECOND - (fixture.clock.now() % SECOND))
    limit(retryAfter())
    await addEvent(1)
    await stage.outbox().drain()
    become('well')
    await later(77 * SECOND - 1)
    expect(await rows()).toMatchObject([{ status: 0, attempts: 1 }])
    await later(1)
    expect(await rows()).toMatchObject([{ status: 1, attempts: 2 }])
  })

  it('gets a message again whose outcome died with its replica, and knows it where the service can', async () => {
    const { database } = fixture
    const isOutcome = (statement: Statement) => statement.name === 'finish_attempts'
    const dying = stage.createOutbox({
      outbox: {
        database: {
          ...database,
          query: (statement: Statement, values) =>
            isOutcome(statement) ? Promise.reject(new Error('killed')) : database.query(statement, values),
        } as typeof database,
      },
    })
    await addEvent(1)
    await expect(dying.drain()).rejects.toThrow('killed')
    await later(SECOND)
    await addEvent(2)
    await later(CLAIM_MS - SECOND - 1)
    expect((await rows()).map(({ status }) => status)).toEqual([0, 1])
    expect(service().accepted).toHaveLength(2)
    await later(1)
    expect(await rows()).toMatchObject([
      { status: 1, attempts: 2 },
      { status: 1, attempts: 1 },
    ])
    const [first, second, again, ...others] = service().keys
    expect(others).toEqual([])
    if (WITHOUT_KEYS.has(kind)) return expect([first, second, again]).toEqual([null, null, null])
    expect(again).toMatch(/./)
    expect([first, second === first]).toEqual([again, false])
  })

  it('shows its settings without a secret', () => {
    expect(JSON.stringify(service().settings)).toMatch(kind === 'email' ? /ops@/ : /s3cret/)
    expect(JSON.stringify(KINDS[kind].config.show(service().settings))).not.toContain('s3cret')
  })
})

/** Their services take a repeat for another message. */
const WITHOUT_KEYS = new Set<string>(['slack', 'teams', 'discord', 'apprise', 'telegram', 'ntfy'])
