import { beforeEach, describe, expect, it } from 'vitest'
import type { PostableAlert } from '../../../src/channels/kinds/alertmanager/alert.ts'
import type { AlertmanagerSettings } from '../../../src/channels/kinds/alertmanager/config.ts'
import { postToPeers, repeatDelayMs } from '../../../src/channels/kinds/alertmanager/peers.ts'
import type { OpenChannel } from '../../../src/domain/channel.ts'
import { MINUTE, NOON } from '../../support/builders.ts'
import { createFakeAlertmanagers, type FakeAlertmanagers } from '../../support/fake-alertmanagers.ts'

let fakes: FakeAlertmanagers
beforeEach(() => {
  fakes = createFakeAlertmanagers(clock.now)
})
const clock = { now: () => NOON }

type Channel = OpenChannel<AlertmanagerSettings>
const channelOf = (...urls: string[]): Channel => ({
  id: '1',
  name: 'Team',
  isTrusted: true,
  settings: { kind: 'alertmanager', urls, labels: {} },
})
const A = 'http://a:9093'
const B = 'http://b:9093'

const anAlert = (check = 'backup', body = ''): PostableAlert => ({
  labels: { alertname: 'HeartbeatCheckDown', check },
  annotations: { body },
  startsAt: new Date(NOON - 1_000).toISOString(),
  endsAt: new Date(NOON + 60_000).toISOString(),
})
const FOREVER = new AbortController().signal

const post = (channel: Channel, signal = FOREVER) =>
  postToPeers({ client: fakes, clock }, channel, [anAlert()], signal, MINUTE)

it('peers get alerts at version 2 of their API, below their own path', async () => {
  expect(await post(channelOf(A, 'http://b:9093/prefix/'))).toEqual({
    outcome: { kind: 'delivered', status: 200 },
    isMissed: false,
  })
  expect(fakes.posts).toEqual([
    { host: 'a:9093', path: '/api/v2/alerts', isTrusted: true, alerts: [anAlert()] },
    { host: 'b:9093', path: '/prefix/api/v2/alerts', isTrusted: true, alerts: [anAlert()] },
  ])
})

describe('the outcome for several peers', () => {
  it.each([
    ['refuse', 200, 'delivered', 200, true],
    [200, 401, 'delivered', 200, false],
    [503, 'refuse', 'retry', 503, true],
    ['refuse', 400, 'retry', null, true],
    [400, 401, 'rejected', 400, false],
    [400, 404, 'retry', 404, false],
    [404, 503, 'retry', 503, true],
    [200, 404, 'delivered', 200, false],
  ] as const)('%s and %s is %s', async (a, b, kind, status, isMissed) => {
    fakes.answer('a:9093', a)
    fakes.answer('b:9093', b)
    expect(await post(channelOf(A, B))).toMatchObject({ outcome: { kind, status }, isMissed })
  })

  it('is a refusal only where no peer has failed otherwise', async () => {
    fakes.answer('a:9093', 404)
    fakes.answer('b:9093', 410)
    expect((await post(channelOf(A, B))).outcome).toMatchObject({ kind: 'retry', isRefusal: true })
    fakes.answer('b:9093', 503)
    expect((await post(channelOf(A, B))).outcome).not.toHaveProperty('isRefusal')
  })

  it('names each peer that failed', async () => {
    fakes.answer('a:9093', 'refuse')
    const note = expect.stringMatching(/^not accepted by every peer: a:9093 refused the connection/)
    expect((await post(channelOf(A, B))).outcome).toMatchObject({ note })
    fakes.answer('b:9093', 503)
    const error = expect.stringMatching(/^a:9093 .*; b:9093 /)
    expect((await post(channelOf(A, B))).outcome).toMatchObject({ error })
  })

  it('is rejected for a channel without peers', async () => {
    expect((await post(channelOf())).outcome.kind).toBe('rejected')
  })

  it.each([
    [['30', '10'], 10_000],
    [['30', undefined], 0],
  ])('has the shortest wait that the peers request: %j', async (requested, retryAfterMs) => {
    const client = {
      send: async ({ url }: { url: string }) => {
        const wait = requested[url.startsWith(A) ? 0 : 1]
        return { status: 503, headers: wait === undefined ? {} : { 'retry-after': wait }, text: '' }
      },
      close: async () => {},
    }
    const { outcome } = await postToPeers({ client, clock }, channelOf(A, B), [anAlert()], FOREVER, MINUTE)
    expect(outcome).toMatchObject({ kind: 'retry', status: 503 })
    expect(outcome).toHaveProperty('retryAfterMs', retryAfterMs)
  })
})

describe('a peer that does not respond', () => {
  it('is given up when the signal aborts', async () => {
    fakes.answer('a:9093', 'hang')
    const timeout = new AbortController()
    const posting = post(channelOf(A), timeout.signal)
    timeout.abort()
    expect((await posting).outcome).toMatchObject({ kind: 'retry', status: null })
  })

  it('is given up soon after another one has accepted', async () => {
    fakes.answer('b:9093', 'hang')
    const { outcome, isMissed } = await postToPeers({ client: fakes, clock }, channelOf(A, B), [anAlert()], FOREVER, 5)
    expect([outcome.kind, isMissed]).toEqual(['delivered', true])
    expect(fakes.firing('a:9093')).toEqual(['backup'])
  })
})

describe('many alerts', () => {
  const many = Array.from({ length: 200 }, (_, index) => anAlert(`check-${index}`, 'x'.repeat(4_000)))
  const postMany = () => postToPeers({ client: fakes, clock }, channelOf(A), many, FOREVER, MINUTE)

  it('are sent in order, in posts that a proxy accepts', async () => {
    expect((await postMany()).outcome.kind).toBe('delivered')
    expect(fakes.posts.flatMap(({ alerts }) => alerts)).toEqual(many)
    expect(fakes.posts.length).toBeLessThan(5)
    for (const { alerts } of fakes.posts) expect(JSON.stringify(alerts).length).toBeLessThan(310_000)
  })

  it('are not delivered when one of their posts is not', async () => {
    const { send } = fakes
    fakes.send = (request, signal) => {
      fakes.answer('a:9093', fakes.posts.length === 1 ? 503 : 200)
      return send(request, signal)
    }
    expect((await postMany()).outcome).toMatchObject({ kind: 'retry', status: 503 })
    expect(fakes.posts).toHaveLength(2)
  })
})

it.each([
  [false, false, 60_000],
  [true, false, 10_000],
  [false, true, 10_000],
])('a post that missed a peer: %s, of a first end: %s, is repeated after %i ms', (isMissed, isFirstEnd, ms) => {
  expect(repeatDelayMs({ outcome: { kind: 'delivered', status: 200 }, isMissed }, isFirstEnd)).toBe(ms)
})
