/**
 * Our channel to Apprise and the real library behind the endpoints of Apprise API: what it delivers to a service (`json://`), and that
 * the fake of the other lanes (`test/support/receivers/apprise.ts`) gives the same outcomes.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AppriseSettings } from '../../src/channels/kinds/apprise/config.ts'
import { renderDigest, renderEvent, TEXT_LIMIT } from '../../src/channels/kinds/apprise/message.ts'
import { createAppriseSender } from '../../src/channels/kinds/apprise/send.ts'
import { createLinks } from '../../src/channels/kinds/kind.ts'
import { createHttpClient } from '../../src/delivery/http.ts'
import type { Digest } from '../../src/domain/digest.ts'
import { CHECK_EVENT_TYPES, type Event } from '../../src/domain/event.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../support/events.ts'
import { createManualClock } from '../support/manual-clock.ts'
import { startReceiver } from '../support/receiver.ts'
import { STORED, startApprise } from '../support/receivers/apprise.ts'
import { use } from '../support/use.ts'
import { HERE, installFromPyPi } from './tools.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const NASTY =
  '<b>&amp;</b> *b* _i_ `c` [x](https://evil.example) @everyone <!channel> <@1> \\n :smile: 👩‍👩‍👧‍👦é {{x}} | "q"'
const DOWN = aFlipEvent({
  facts: { reason: 'failed', last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 },
  check: { name: NASTY.slice(0, 90), description: `Runbook: https://wiki.example.com/backup ${NASTY.repeat(20)}` },
  lastPing: aLastPing({ body: `${NASTY}\n  two  spaces\n`.repeat(30) }),
})
const UP = aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', status: 'up', down_for_seconds: 7_500 } })

/** What the services behind Apprise get, each at a path of its own. */
const services = use(startReceiver)
const library = use(startLibrary)
const fake = use(() => startApprise((url) => ({ kind: 'apprise', url, key: 'ops' })))
const http = use(async () => {
  const client = createHttpClient({ allowedTargets: ['127.0.0.0/8'] })
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
})
beforeAll(() => services.answer(({ path }) => ({ status: path.startsWith('/broken') ? 500 : 200 })))
let before = 0
beforeEach(() => {
  before = services.requests.length
})

async function startLibrary() {
  const python = await installFromPyPi()
  const stored = STORED.ops!.map((tags, index) => [`json://127.0.0.1:${services.port}/${index}`, tags])
  const env = { ...process.env, STORED: JSON.stringify({ ops: stored }) }
  const program = spawn(python, [join(HERE, 'programs/apprise_server.py')], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [port] = await once(createInterface(program.stdout), 'line')
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      program.stdin.end()
      await once(program, 'exit')
    },
  }
}

const urlOf = { 'the library': () => library.url, 'the fake': () => (fake.settings as AppriseSettings).url }

function send(url: string, config: Partial<AppriseSettings>, what: Event | Digest) {
  const sender = createAppriseSender({ client: http, clock: createManualClock(), links })
  const settings = { kind: 'apprise', url, ...config } as const
  const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'Ops', isTrusted: false, settings }
  const { signal } = new AbortController()
  return 'type' in what
    ? sender({ channel, event: what, checkKey: 1 }, signal)
    : sender.sendDigest({ channel, digest: what }, signal)
}

/** What the services have received in this test, by their paths. */
const received = () =>
  services.requests
    .slice(before)
    .map(({ path, body }) => ({ path, ...JSON.parse(body) }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))

const DELIVERED = { kind: 'delivered', status: 200 }
const REFUSED = { kind: 'retry', isRefusal: true }
const service = (path: string) => `json://user:s3cret@127.0.0.1:${services.port}${path}`

describe.each(Object.keys(urlOf) as (keyof typeof urlOf)[])('%s', (which) => {
  it.each<[string, () => Partial<AppriseSettings>, object, string[]]>([
    ['a key notifies the services without tags', () => ({ key: 'ops' }), DELIVERED, ['/2']],
    ['a tag', () => ({ key: 'ops', tag: 'chat' }), DELIVERED, ['/1']],
    ['one of two tags', () => ({ key: 'ops', tag: 'team, chat' }), DELIVERED, ['/0', '/1']],
    ['both of two tags', () => ({ key: 'ops', tag: 'team on-call' }), DELIVERED, ['/0']],
    ['all', () => ({ key: 'ops', tag: 'all' }), DELIVERED, ['/0', '/1', '/2']],
    ['a tag that none has', () => ({ key: 'ops', tag: 'team chat' }), { ...REFUSED, status: 424 }, []],
    ['a key that is not known', () => ({ key: 'other' }), { ...REFUSED, status: 204 }, []],
    ['URLs', () => ({ urls: `${service('/a')}, ${service('/b')} ${service('/c')}` }), DELIVERED, ['/a', '/b', '/c']],
    ['a URL of no service', () => ({ urls: 'foo://user:s3cret@example.com' }), { ...REFUSED, status: 204 }, []],
  ])('%s', async (_, configOf, outcome, paths) => {
    expect(await send(urlOf[which](), configOf(), DOWN)).toMatchObject(outcome)
    if (which === 'the library') expect(received().map(({ path }) => path)).toEqual(paths)
  })

  it.each<[string, Event | Digest]>([
    ['a check that is down', DOWN],
    ['a check that is up again', UP],
    ['a test', aTestEvent],
    ['a digest', aDigest(manyFlipEvents(60, (number) => ({ check: { name: `${number} ${NASTY}`.slice(0, 100) } })))],
    ...CHECK_EVENT_TYPES.map((type): [string, Event] => [type, aFlipEvent({ type })]),
  ])('accepts %s, and delivers its text as it is', async (_, what) => {
    expect(await send(urlOf[which](), { key: 'ops' }, what)).toEqual(DELIVERED)
    const { title, body, type } = 'type' in what ? renderEvent(what, links) : renderDigest(what, links)
    expect(title.length + body.length).toBeLessThanOrEqual(TEXT_LIMIT)
    if (which === 'the library') expect(received()).toMatchObject([{ title, message: body, type }])
  })
})

describe('the library', () => {
  it('escapes the text for a service with mark-up', async () => {
    const detail = '<b>x</b> *y* [z](https://evil.example)'
    const event = aFlipEvent({ facts: { reason: 'failed', detail } })
    const urls = ['html', 'markdown'].map((format) => `${service(`/${format}`)}?format=${format}`).join(', ')
    expect(await send(library.url, { urls }, event)).toEqual(DELIVERED)
    const [html, markdown] = received().map(({ message }) => message)
    expect(html).toContain('&lt;b&gt;x&lt;/b&gt;')
    expect(markdown).toContain('\\*y\\*')
    expect(markdown).toMatch(/\\\[z\\\].?\\\(https:/)
  })

  it('says which service has failed, and the error has no secret', async () => {
    const urls = `${service('/works')}, ${service('/broken/s3cret')}`
    const outcome = await send(library.url, { urls }, DOWN)
    expect(outcome).toMatchObject({ ...REFUSED, status: 424 })
    expect(outcome).toHaveProperty('error', expect.stringMatching(/responded 424: .*Failed to send JSON POST notif/))
    expect(JSON.stringify(outcome)).not.toContain('s3cret')
    // Apprise has sent it to the others nevertheless.
    expect(received().map(({ path }) => path)).toEqual(['/broken/s3cret', '/works'])
  })
})
