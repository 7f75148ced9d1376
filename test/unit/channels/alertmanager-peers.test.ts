import { beforeEach, describe, expect, it } from 'vitest'
import type { PostableAlert } from '../../../src/channels/kinds/alertmanager/alert.ts'
import type { AlertmanagerSettings } from '../../../src/channels/kinds/alertmanager/config.ts'
import { createPeers, repeatDelayMs } from '../../../src/channels/kinds/alertmanager/peers.ts'
import type { OpenChannel } from '../../../src/domain/channel.ts'
import { NOON } from '../../support/builders.ts'
import { createFakeAlertmanagers, type FakeAlertmanagers } from '../../support/fake-alertmanagers.ts'

let now: number
let fakes: FakeAlertmanagers
beforeEach(() => {
  now = NOON
  fakes = createFakeAlertmanagers(() => now)
})
const clock = { now: () => now }

const channelOf = (...urls: string[]): OpenChannel<AlertmanagerSettings> => ({
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

async function tell(channel: OpenChannel<AlertmanagerSettings>, signal = FOREVER) {
  return createPeers({ client: fakes, clock }, null).post(channel, [anAlert()], signal)
}

it('posts to version 2 of the API of each peer, below whatever path it has', async () => {
  const { outcome, missed } = await tell(channelOf(A, 'http://b:9093/prefix/'))
  expect(outcome).toEqual({ kind: 'delivered', status: 200 })
  expect(missed).toBe('none')
  expect(fakes.posts).toEqual([
    { host: 'a:9093', path: '/api/v2/alerts', isTrusted: true, alerts: [anAlert()] },
    { host: 'b:9093', path: '/prefix/api/v2/alerts', isTrusted: true, alerts: [anAlert()] },
  ])
})

describe('what became of it', () => {
  it('is delivered when one peer has it, with a word about the others', async () => {
    fakes.answer('a:9093', 'refuse')
    const { outcome, missed } = await tell(channelOf(A, B))
    expect(outcome).toMatchObject({ kind: 'delivered', status: 200 })
    expect(outcome).toHaveProperty(
      'note',
      expect.stringMatching(/^not accepted by every peer: a:9093 refused the connection/),
    )
    expect(missed).toBe('temporarily')
  })

  it('is delivered when one peer has it and the other never will', async () => {
    fakes.answer('b:9093', 401)
    const { outcome, missed } = await tell(channelOf(A, B))
    expect([outcome.kind, missed]).toEqual(['delivered', 'permanently'])
  })

  it.each([
    [503, 'refuse', 'retry', 503, 'temporarily'],
    ['refuse', 400, 'retry', null, 'temporarily'],
    [400, 404, 'rejected', 400, 'permanently'],
  ] as const)('with %s and %s is %s', async (a, b, kind, status, missed) => {
    fakes.answer('a:9093', a)
    fakes.answer('b:9093', b)
    const telling = await tell(channelOf(A, B))
    expect(telling).toMatchObject({ outcome: { kind, status }, missed })
    expect(telling.outcome).toHaveProperty('error', expect.stringMatching(/^a:9093 .*; b:9093 /))
  })

  it('is refused for a channel that names no peer', async () => {
    expect((await tell(channelOf())).outcome.kind).toBe('rejected')
  })

  it.each([
    [['30', '10'], 10_000],
    [['30', undefined], undefined],
  ])('waits as long as the peers %j ask for', async (wishes, retryAfterMs) => {
    const client = {
      send: async ({ url }: { url: string }) => {
        const wish = wishes[url.startsWith(A) ? 0 : 1]
        return { status: 503, headers: wish === undefined ? {} : { 'retry-after': wish }, text: '' }
      },
      close: async () => {},
    }
    const { outcome } = await createPeers({ client, clock }, null).post(channelOf(A, B), [anAlert()], FOREVER)
    expect(outcome).toMatchObject({ kind: 'retry', status: 503 })
    expect('retryAfterMs' in outcome ? outcome.retryAfterMs : undefined).toBe(retryAfterMs)
  })

  it('is a retry when nobody answers before the signal', async () => {
    fakes.answer('a:9093', 'hang')
    const ending = new AbortController()
    const telling = tell(channelOf(A), ending.signal)
    ending.abort()
    expect((await telling).outcome).toMatchObject({ kind: 'retry', status: null })
  })
})

describe('a peer that does not answer', () => {
  it('is not waited for long once another one has it', async () => {
    fakes.answer('b:9093', 'hang')
    const { outcome, missed } = await createPeers({ client: fakes, clock }, 5).post(
      channelOf(A, B),
      [anAlert()],
      FOREVER,
    )
    expect([outcome.kind, missed]).toEqual(['delivered', 'temporarily'])
    expect(fakes.firing('a:9093')).toEqual(['backup'])
  })

  it('is left out for a while, and then asked again', async () => {
    const peers = createPeers({ client: fakes, clock }, 5)
    const hold = fakes.hold('b:9093')
    fakes.answer('b:9093', 'hang')
    const first = peers.post(channelOf(A, B), [anAlert()], FOREVER)
    await hold.arrived
    now += 1_000
    hold.release()
    expect((await first).missed).toBe('temporarily')
    expect(fakes.posts).toHaveLength(2)

    const again = await peers.post(channelOf(A, B), [anAlert()], FOREVER)
    expect([again.missed, fakes.posts.length]).toEqual(['temporarily', 3])
    expect(again.outcome).toHaveProperty('note', expect.stringContaining('no response from b:9093'))

    fakes.answer('b:9093', 200)
    now += 20_000
    expect((await peers.post(channelOf(A, B), [anAlert()], FOREVER)).missed).toBe('none')
    expect(fakes.firing('b:9093')).toEqual(['backup'])
  })

  it('is asked all the same when it is the only one', async () => {
    const peers = createPeers({ client: fakes, clock }, 5)
    for (let attempt = 1; attempt <= 2; attempt += 1) {
      const hold = fakes.hold('a:9093')
      fakes.answer('a:9093', 'hang')
      const ending = new AbortController()
      const telling = peers.post(channelOf(A), [anAlert()], ending.signal)
      await hold.arrived
      now += 1_000
      hold.release()
      ending.abort()
      await telling
    }
    expect(fakes.posts).toHaveLength(2)
  })

  it('that refuses at once is asked each time', async () => {
    const peers = createPeers({ client: fakes, clock }, 5)
    fakes.answer('b:9093', 'refuse')
    await peers.post(channelOf(A, B), [anAlert()], FOREVER)
    await peers.post(channelOf(A, B), [anAlert()], FOREVER)
    expect(fakes.posts).toHaveLength(4)
  })
})

describe('many alerts', () => {
  const many = Array.from({ length: 200 }, (_, index) => anAlert(`check-${index}`, 'x'.repeat(4_000)))
  const tellMany = () => createPeers({ client: fakes, clock }, null).post(channelOf(A), many, FOREVER)

  it('travel in their order, in posts that a proxy lets through', async () => {
    expect((await tellMany()).outcome.kind).toBe('delivered')
    expect(fakes.posts.flatMap(({ alerts }) => alerts)).toEqual(many)
    expect(fakes.posts.length).toBeLessThan(5)
    for (const { alerts } of fakes.posts) expect(JSON.stringify(alerts).length).toBeLessThan(310_000)
  })

  it('are not delivered when one post is not', async () => {
    const { send } = fakes
    fakes.send = (request, signal) => {
      fakes.answer('a:9093', fakes.posts.length === 1 ? 503 : 200)
      return send(request, signal)
    }
    expect((await tellMany()).outcome).toMatchObject({ kind: 'retry', status: 503 })
    expect(fakes.posts).toHaveLength(2)
  })
})

it('tells again after a minute, soon what a peer has missed, and soon the end that was just given', () => {
  const outcome = { kind: 'delivered', status: 200 } as const
  expect(repeatDelayMs({ outcome, missed: 'none' }, false)).toBe(60_000)
  expect(repeatDelayMs({ outcome, missed: 'permanently' }, false)).toBe(60_000)
  expect(repeatDelayMs({ outcome, missed: 'temporarily' }, false)).toBe(10_000)
  expect(repeatDelayMs({ outcome, missed: 'none' }, true)).toBe(10_000)
})
