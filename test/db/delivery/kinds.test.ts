/**
 * What every kind of channel does, by its real sender, to a fake of its service (test/support/receivers) that refuses what the
 * real one refuses: events, digests, and what the service says of itself. Faults: test/db/delivery/kinds-faults.test.ts.
 */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { CHANNEL_KINDS, INCIDENT_KINDS } from '../../../src/domain/channel.ts'
import { DIGEST } from '../../../src/domain/digest.ts'
import { CHECK_EVENT_TYPES, EVENT_BODY_BYTES } from '../../../src/domain/event.ts'
import { LIMITS } from '../../../src/domain/limits.ts'
import { REFUSED_MS } from '../../../src/domain/retry.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { aFlipEvent, aLastPing } from '../../support/events.ts'
import { createFixture, type Fixture, keysFrom } from './fixture.ts'
import { useKind } from './kind-stage.ts'

const stack = new AsyncDisposableStack()
let fixture: Fixture
beforeAll(async () => {
  fixture = stack.use(await createFixture())
})
afterAll(() => stack.disposeAsync())
beforeEach(() => fixture.clear())

/** Marks of every service's format, characters of several UTF-16 units, and a text that changes the direction. */
const NASTY = `<b>&amp; "q" 'a' *b* _i_ ~s~ \`c\` [x](https://evil.example) @everyone @here <!channel> <@1> {{x}} | \\ 👩‍👩‍👧‍👦🇩🇪é\u202e`
const fill = (length: number) =>
  NASTY.repeat(Math.ceil(length / NASTY.length))
    .slice(0, length)
    .toWellFormed()
const LONG = {
  name: [...fill(400)].slice(0, LIMITS.nameLength).join(''),
  description: fill(LIMITS.descriptionLength),
  output: fill(EVENT_BODY_BYTES).slice(0, EVENT_BODY_BYTES / 4),
}
const FACTS = {
  incident_at: '2026-11-21T03:00:00.000Z',
  last_success_at: '2026-11-20T03:00:00.000Z',
  usual_ms: 754_000,
}

type Changes = Parameters<typeof aFlipEvent>[0]
/** A flip as the check had it, and one whose texts are as long and as hostile as they can be. */
const TEXTS: readonly (readonly [string, Changes])[] = [
  ['plain', {}],
  [
    'with all that is known',
    {
      facts: FACTS,
      check: { description: 'Runbook: https://wiki.example.com/backup' },
      lastPing: aLastPing({ body: 'disk full' }),
    },
  ],
  [
    'as long and hostile as can be',
    {
      facts: { ...FACTS, detail: fill(500) },
      check: { name: LONG.name, description: LONG.description, tags: [fill(50)] },
      lastPing: aLastPing({ body: LONG.output }),
    },
  ],
]

describe.each(CHANNEL_KINDS)('a channel of the kind %s', (kind) => {
  const { service, channelId, outbox, later } = useKind(kind, () => fixture, stack)
  const drain = () => outbox().drain()
  const takesDigests = () => outbox().senders[kind].sendDigest !== undefined
  const rows = () => fixture.deliveries()

  it.each(CHECK_EVENT_TYPES)('is sent %s, whatever its texts are', async (type) => {
    for (const [index, [, changes]] of TEXTS.entries())
      await fixture.addEvent(channelId(), index + 1, { ...changes, type })
    await drain()
    expect(service().refused).toEqual([])
    for (const row of await rows()) expect(row).toMatchObject({ status: 1, attempts: 1 })
    const isSent = !INCIDENT_KINDS.includes(kind) || type === 'check.down'
    if (isSent) expect(service().accepted).toHaveLength(TEXTS.length)
  })

  it('is sent what has happened, since when, why, and all that helps', async () => {
    await fixture.addEvent(channelId(), 1, TEXTS[1]![1])
    await drain()
    const [text] = service().accepted
    if (kind === 'webhook') return expect(JSON.parse(text!)).toMatchObject({ type: 'check.down' })
    for (const part of [
      'Nightly backup is down',
      '2026-11-21 03:00:00 UTC',
      'disk full',
      'https://heartbeat.example.com/checks/',
    ])
      expect(text).toContain(part)
    for (const part of ['2026-11-20 03:00:00 UTC', '12 min 34 s', 'https://wiki.example.com/backup'])
      expect(text).toContain(part)
  })

  it('is sent the readable part of an output that is no text', async () => {
    // A character that is cut, half of a pair, NUL, colours, and a bell.
    const bytes = Buffer.from('c3 ed a0 80 00 1b 5b 33 31 6d 07'.replaceAll(' ', ''), 'hex')
    const output = Buffer.concat([Buffer.from('disk '), bytes, Buffer.from('full')])
    await fixture.addEvent(channelId(), 1, { lastPing: aLastPing() }, output)
    await drain()
    expect(service().refused).toEqual([])
    expect(await rows()).toMatchObject([{ status: 1, attempts: 1 }])
    const [text] = service().accepted
    expect(text).toMatch(/disk .*full/)
    // A program gets it as it was.
    for (const control of kind === 'webhook' ? [] : ['\\u00', '\0', '\x07', '\x1b']) expect(text).not.toContain(control)
  })

  it('leads from what is down to its acknowledgement, and from nothing else', async () => {
    await fixture.addEvent(channelId(), 1, TEXTS[1]![1])
    await fixture.addEvent(channelId(), 2, { ...TEXTS[1]![1], type: 'check.late' })
    await drain()
    const leading = service().accepted.filter((text) => text.includes('/ack/'))
    const { id } = aFlipEvent().check
    expect(leading).toEqual([expect.stringContaining(`/ack/${id}.${Date.UTC(2026, 10, 21, 3)}`)])
    expect(leading[0]).toMatch(/is down|check\.down/)
  })

  it('is sent one message for a crowd, if people read it', async () => {
    if (!takesDigests()) return expect(['webhook', ...INCIDENT_KINDS]).toContain(kind)
    const keys = keysFrom(1, DIGEST.named + 1)
    for (const key of keys)
      await fixture.addEvent(channelId(), key, {
        ...TEXTS[2]![1],
        check: { ...TEXTS[2]![1]!.check, id: `check ${key}` },
      })
    await drain()
    expect(service().refused).toEqual([])
    expect(service().accepted).toHaveLength(1)
    expect(service().accepted[0]).toContain('51 checks: 51 down')
    // How many are named depends on the limit of the service.
    expect(service().accepted[0]).toMatch(/\b\d+ more\b/)
    for (const row of await rows()) expect(row).toMatchObject({ status: 1, attempts: 1 })
  })

  it('waits as long as the service says, and loses nothing', async () => {
    service().become('too many')
    await fixture.addEvent(channelId(), 1)
    await drain()
    const [waiting] = await rows()
    expect(waiting).toMatchObject({ status: 0, attempts: 1 })
    const ms = service().tooManyMs
    if (ms !== null) {
      await later(ms - 1)
      expect(await rows()).toMatchObject([{ status: 0, attempts: 1 }])
    }
    service().become('well')
    await later(ms === null ? MINUTE : 1)
    expect(await rows()).toMatchObject([{ status: 1, attempts: 2 }])
    expect(service().accepted).toHaveLength(1)
  })

  it('gives up when the address is gone for ever', async () => {
    service().become('gone')
    await fixture.addEvent(channelId(), 1)
    await drain()
    expect(await rows()).toMatchObject([{ status: service().isGoneAtOnce ? 2 : 0, attempts: 1 }])
    for (let passed = 0; passed <= REFUSED_MS + HOUR; passed += 5 * MINUTE) await later(5 * MINUTE)
    expect(await rows()).toMatchObject([{ status: 2 }])
  })

  it.each(['too many', 'gone'] as const)('shows no secret while the service is: %s', async (mood) => {
    service().become(mood)
    await fixture.addEvent(channelId(), 1)
    await drain()
    const [row] = await rows()
    expect(row!.last_error).toMatch(/\S/)
    expect(row!.last_error).not.toContain('s3cret')
    expect(row!.last_error).not.toContain(Buffer.from('robot:s3cret').toString('base64'))
  })

  it('is sent a test', async () => {
    await fixture.addTest(channelId())
    await drain()
    expect(service().refused).toEqual([])
    expect(service().accepted[0]).toMatch(/A test of this channel|channel\.test|HeartbeatTest/)
  })
})
