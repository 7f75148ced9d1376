/** The body of a webhook, and what the OpenAPI document says about it. */

import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createLinks, linkForPeople } from '../../../src/channels/kinds/kind.ts'
import { renderPayload } from '../../../src/channels/kinds/webhook/payload.ts'
import type { FlipReason } from '../../../src/domain/check.ts'
import {
  type Event,
  eventOf,
  lateEvent,
  type Notice,
  type NotifiedCheck,
  noticeEvent,
} from '../../../src/domain/event.ts'
import { WEBHOOK_HEADERS, WebhookPayload } from '../../../src/http/api/event.schema.ts'
import { describeRoutes } from '../../../src/http/api/openapi.ts'
import { ROUTES } from '../../../src/http/api/routes.ts'
import { HOUR, NOON } from '../../support/builders.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'

const links = createLinks(() => 'https://heartbeat.test/api/v1')
const kubernetes = { cluster: 'default', namespace: 'shop', name: 'backup' }
const down = aFlipEvent({
  facts: { reason: 'failed' },
  check: { name: 'Nightly "backup"', tags: ['b', 'a'], labels: { team: 'shop', 'example.com/a': '' }, kubernetes },
  lastPing: aLastPing({ body: 'no space left\n\u0000 😀 </script>' }),
})

describe('the body of a webhook', () => {
  it('has the fields of the design, in this order', () => {
    const link = 'https://heartbeat.test/api/v1/checks/0197a000-0000-7000-8000-000000000002'
    expect(renderPayload(down, links)).toBe(
      JSON.stringify({
        version: 1,
        id: '0197a000-0000-7000-8000-000000000001',
        type: 'check.down',
        timestamp: '2026-11-21T03:00:00.000Z',
        data: {
          reason: 'failed',
          occurred_at: '2026-11-21T03:00:00.000Z',
          detected_at: '2026-11-21T03:00:00.412Z',
          status: 'down',
          previous_status: 'up',
          down_for_seconds: null,
          flips: null,
          gap: null,
          detail: null,
          check: {
            id: '0197a000-0000-7000-8000-000000000002',
            name: 'Nightly "backup"',
            slug: 'nightly-backup',
            tags: ['b', 'a'],
            labels: { 'example.com/a': '', team: 'shop' },
            project: { id: '0197a000-0000-7000-8000-000000000003', slug: 'shop' },
            kubernetes,
          },
          last_ping: {
            type: 'fail',
            exit_code: 3,
            duration_ms: 1_000,
            created_at: '2026-11-21T02:59:58.123Z',
            body: 'no space left\n\u0000 😀 </script>',
          },
          links: { check: link, pings: `${link}/pings`, flips: `${link}/flips` },
        },
      }),
    )
  })

  it('of a run of a CronJob says why, and names the CronJob and the Job where there are some', () => {
    const dataOf = (names: object, detail?: string) => {
      const event = aFlipEvent({
        facts: detail === undefined ? {} : { detail },
        check: { kubernetes: { ...kubernetes, ...names } },
      })
      return JSON.parse(renderPayload(event, links)).data
    }
    const names = { source: { kind: 'CronJob', name: 'backup' }, run: 'backup-29384620' }
    expect(dataOf(names, 'exceeded quota')).toMatchObject({ detail: 'exceeded quota' })
    expect(dataOf(names).check.kubernetes).toEqual({ ...kubernetes, ...names })
    expect(dataOf({ source: { kind: 'CronJob', name: 'backup' } }).check.kubernetes).toStrictEqual({
      ...kubernetes,
      source: { kind: 'CronJob', name: 'backup' },
    })
    expect(dataOf({}).check.kubernetes).toStrictEqual(kubernetes)
  })

  it('is the same to the byte for any order of the parts of the event', () => {
    const reverse = (value: unknown): unknown =>
      value === null || typeof value !== 'object' || Array.isArray(value)
        ? value
        : Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([name, part]) => [name, reverse(part)]),
          )
    expect(renderPayload(reverse(down) as NotifiedCheck, links)).toBe(renderPayload(down, links))
  })

  it('contains no field that is not listed, such as a public id', () => {
    const publicId = '11111111-2222-4333-8444-555555555555'
    const add = <Part extends object>(part: Part) => ({ ...part, public_id: publicId, publicId })
    const event = add({
      ...down,
      facts: add(down.facts),
      check: add({ ...down.check, project: add(down.check.project), kubernetes: add(down.check.kubernetes!) }),
      lastPing: add(down.lastPing!),
    })
    expect(renderPayload(event, links)).toBe(renderPayload(down, links))
  })

  it('contains nulls, durations and gaps of the event', () => {
    const gap = { started_at: '2026-11-21T01:00:00.000Z', ended_at: '2026-11-21T02:00:00.000Z' }
    const event = aFlipEvent({ type: 'check.up', facts: { reason: 'recovered', down_for_seconds: 3_600, gap } })
    expect(JSON.parse(renderPayload(event, links)).data).toMatchObject({
      reason: 'recovered',
      down_for_seconds: 3_600,
      gap,
      check: { kubernetes: null },
      last_ping: null,
    })
  })

  it('says that it comes after the time of the channel, and nothing of that elsewhere', () => {
    const escalated = aFlipEvent({ facts: { previous_status: 'down', down_for_seconds: 1_800, escalated: true } })
    expect(JSON.parse(renderPayload(escalated, links)).data).toMatchObject({ down_for_seconds: 1_800, escalated: true })
    expect(JSON.parse(renderPayload(down, links)).data).not.toHaveProperty('escalated')
  })

  it('has the number of a reminder, and no such field elsewhere', () => {
    const still = aFlipEvent({ facts: { previous_status: 'down', down_for_seconds: 3_600, reminder: 2 } })
    expect(JSON.parse(renderPayload(still, links)).data).toMatchObject({ down_for_seconds: 3_600, reminder: 2 })
    expect(JSON.parse(renderPayload(down, links)).data).not.toHaveProperty('reminder')
  })

  it('has the start of a silence that has ended, and no such field elsewhere', () => {
    const silenced_from = '2026-11-21T01:00:00.000Z'
    expect(JSON.parse(renderPayload(aFlipEvent({ facts: { silenced_from } }), links)).data).toMatchObject({
      silenced_from,
    })
    expect(JSON.parse(renderPayload(down, links)).data).not.toHaveProperty('silenced_from')
  })

  it('of a test is a message', () => {
    expect(JSON.parse(renderPayload(aTestEvent, links))).toEqual({
      version: 1,
      id: aTestEvent.id,
      type: 'channel.test',
      timestamp: '2026-11-21T03:00:00.000Z',
      data: { message: expect.stringMatching(/^This is a test from Heartbeat Operator\./) },
    })
  })
})

it.each(['https://heartbeat.test/api/v1', 'https://heartbeat.test/api/v1/'])(
  'a link begins with %s, read when the link is made',
  (base) => {
    let baseUrl = 'http://not-yet'
    const late = createLinks(() => baseUrl)
    baseUrl = base
    expect(late.check('7')).toBe('https://heartbeat.test/api/v1/checks/7')
  },
)

describe('with the dashboard', () => {
  const withPages = createLinks(() => 'https://heartbeat.test/api/v1', true)

  it('people are led to the page of the check, at the origin of the base URL; without it to the API', () => {
    expect(linkForPeople(withPages, '7')).toBe('https://heartbeat.test/checks/7')
    expect(linkForPeople(links, '7')).toBe('https://heartbeat.test/api/v1/checks/7')
    for (const end of ['', '/']) {
      const below = createLinks(() => `https://heartbeat.test/ops/api/v1${end}`, true)
      expect([below.dashboard('7'), below.checks()]).toEqual([
        'https://heartbeat.test/ops/checks/7',
        'https://heartbeat.test/ops/checks',
      ])
    }
  })

  it('the body of a webhook has the page besides the other links, which stay as they are', () => {
    const linksIn = (body: string) => JSON.parse(body).data.links
    const page = 'https://heartbeat.test/checks/0197a000-0000-7000-8000-000000000002'
    expect(linksIn(renderPayload(down, withPages))).toEqual({ ...linksIn(renderPayload(down, links)), dashboard: page })
  })
})

describe('the OpenAPI document', () => {
  // biome-ignore lint/suspicious/noExplicitAny: the document as it is sent
  const document: any = JSON.parse(JSON.stringify(describeRoutes(ROUTES)))

  /** Without additional properties: everything that is sent must be described. */
  function readSchema(): z.ZodType {
    const visit = (value: unknown): unknown => {
      if (Array.isArray(value)) return value.map(visit)
      if (typeof value !== 'object' || value === null) return value
      if ('$ref' in value) return visit(document.components.schemas[String(value.$ref).split('/').at(-1)!])
      const inner = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, visit(part)]))
      // Labels are a map, the one object without properties of its own.
      return inner.type === 'object' && 'properties' in inner ? { ...inner, additionalProperties: false } : inner
    }
    const { schema } = document.webhooks.event.post.requestBody.content['application/json']
    return z.fromJSONSchema(visit(schema) as Parameters<typeof z.fromJSONSchema>[0])
  }
  const schema = readSchema()

  const FLAPPING_NOTICE = {
    type: 'check.flapping',
    reason: 'flapping',
    at: NOON,
    from: 'up',
    to: 'down',
    downSince: null,
    flips: 11,
  } as const

  const WARNED_NOTICE = {
    ...FLAPPING_NOTICE,
    type: 'check.warned',
    reason: 'warned',
    to: 'up',
    flips: null,
  } as const

  function anEvent(reason: FlipReason, to: 'new' | 'up' | 'down' | 'paused', changes: Partial<NotifiedCheck> = {}) {
    const flip = { reason, from: 'up', to, at: NOON } as Parameters<typeof eventOf>[0]
    const gap = reason === 'outage' ? { startedAt: NOON - 9, endedAt: NOON } : null
    const type = { down: 'check.down', up: 'check.up', new: null, paused: null }[to] as Notice['type'] | null
    const known = {
      reason,
      at: NOON,
      from: 'up',
      to,
      downSince: to === 'up' ? NOON - HOUR : null,
      flips: null,
    } as const
    const notice = type === null || reason === 'outage' ? null : { ...known, type }
    const made = eventOf(flip, { notice, detectedAt: NOON + 1, gap })!
    return { ...down, type: made.type, facts: made.data, ...changes }
  }

  it.each<[string, Event]>([
    ['check.down, missed', anEvent('missed', 'down')],
    ['check.down, failed', anEvent('failed', 'down')],
    ['check.down, overran', anEvent('overran', 'down')],
    ['check.down of an incident', aFlipEvent({ facts: { incident_at: '2026-11-21T03:00:00.000Z' } })],
    [
      'check.down of a run of a CronJob',
      anEvent('failed', 'down', {
        facts: { ...down.facts, detail: 'container backup failed (exit code 3)' },
        check: {
          ...down.check,
          kubernetes: { ...kubernetes, source: { kind: 'CronJob', name: 'backup' }, run: 'backup-1' },
        },
      }),
    ],
    ['check.down without a ping and without Kubernetes', aFlipEvent()],
    [
      'check.down after an empty ping',
      anEvent('missed', 'down', { lastPing: aLastPing({ exit_code: null, duration_ms: null, body: null } as never) }),
    ],
    ['an escalation', anEvent('failed', 'down', { facts: { ...down.facts, down_for_seconds: 60, escalated: true } })],
    ['a reminder', anEvent('failed', 'down', { facts: { ...down.facts, down_for_seconds: 60, reminder: 1 } })],
    ...(['down', 'up', 'paused'] as const).map((to) => {
      const reason = to === 'down' ? 'missed' : to === 'up' ? 'recovered' : 'paused'
      const event = anEvent(reason, to)
      const facts = { ...event.facts, silenced_from: '2026-11-21T01:00:00.000Z' }
      return [`check.${to} at the end of a silence`, { ...event, facts }] as [string, Event]
    }),
    ['check.up', anEvent('recovered', 'up')],
    ['check.paused', anEvent('paused', 'paused')],
    ['check.resumed', anEvent('resumed', 'new')],
    ['check.flapping', { ...down, type: 'check.flapping', facts: noticeEvent(FLAPPING_NOTICE, NOON + 1).data }],
    ['check.warned', { ...down, type: 'check.warned', facts: noticeEvent(WARNED_NOTICE, NOON + 1).data }],
    [
      'check.warned of a run of a CronJob',
      {
        ...down,
        type: 'check.warned',
        facts: { ...noticeEvent(WARNED_NOTICE, NOON + 1).data, detail: 'container backup failed (exit code 3)' },
        lastPing: aLastPing({ type: 'warn' } as never),
      },
    ],
    ['check.late', { ...down, type: 'check.late', facts: lateEvent(NOON, NOON + 1).data }],
    ['check.unknown', anEvent('outage', 'up')],
    ['channel.test', aTestEvent],
  ])('describes the body of %s', (_, event) => {
    for (const each of [
      links,
      createLinks(
        () => 'https://heartbeat.test/api/v1',
        true,
        () => 'token',
      ),
    ]) {
      const payload = JSON.parse(renderPayload(event, each))
      expect(schema.safeParse(payload)).toEqual({ success: true, data: payload })
      expect(WebhookPayload.parse(payload)).toEqual(payload)
    }
  })

  it.each<[string, (payload: Record<string, unknown>) => void]>([
    ['another version', (payload) => (payload.version = 2)],
    ['an unknown type', (payload) => (payload.type = 'check.lost')],
    ['the reason of another type', (payload) => ((payload.data as { reason: string }).reason = 'recovered')],
    ['no check', (payload) => delete (payload.data as { check?: unknown }).check],
    ['a field that is not described', (payload) => ((payload.data as { public_id?: string }).public_id = 'x')],
  ])('describes no body with %s', (_, spoil) => {
    const payload = JSON.parse(renderPayload(down, links))
    spoil(payload)
    expect(schema.safeParse(payload).success).toBe(false)
  })

  it('describes the headers of a webhook', () => {
    const { parameters } = document.webhooks.event.post
    expect(parameters.map(({ name, in: location }: { name: string; in: string }) => [name, location])).toEqual(
      Object.keys(WEBHOOK_HEADERS).map((name) => [name, 'header']),
    )
    expect(Object.keys(WEBHOOK_HEADERS)).toEqual(['webhook-id', 'webhook-timestamp', 'webhook-signature'])
  })
})
