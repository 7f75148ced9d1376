import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { renderPayload } from '../../../src/channels/kinds/webhook/payload.ts'
import type { FlipReason } from '../../../src/domain/check.ts'
import { type Event, eventOf, lateEvent, type NotifiedCheck } from '../../../src/domain/event.ts'
import { WEBHOOK_HEADERS, WebhookPayload } from '../../../src/http/api/event.schema.ts'
import { describeRoutes } from '../../../src/http/api/openapi.ts'
import { ROUTES } from '../../../src/http/api/routes.ts'
import { HOUR, NOON } from '../../support/builders.ts'

// biome-ignore lint/suspicious/noExplicitAny: the document as it is sent
const document: any = JSON.parse(JSON.stringify(describeRoutes(ROUTES)))
const links = createLinks(() => 'https://heartbeat.example.com/api/v1')

/** As strict clients would have it: what we send is all described. */
function readSchema(): z.ZodType {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== 'object' || value === null) return value
    if ('$ref' in value) return visit(document.components.schemas[String(value.$ref).split('/').at(-1)!])
    const inner = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, visit(part)]))
    return inner.type === 'object' ? { ...inner, additionalProperties: false } : inner
  }
  const { schema } = document.webhooks.event.post.requestBody.content['application/json']
  return z.fromJSONSchema(visit(schema) as Parameters<typeof z.fromJSONSchema>[0])
}
const schema = readSchema()

const CHECK: NotifiedCheck['check'] = {
  id: '0199aaaa-0000-7000-8000-00000000000a',
  name: 'Nightly backup',
  slug: 'nightly-backup',
  project: { id: '0199aaaa-0000-7000-8000-00000000000b', slug: 'payments' },
  kubernetes: { cluster: 'default', namespace: 'payments', name: 'nightly-backup' },
}
const PING: NotifiedCheck['lastPing'] = {
  type: 'fail',
  exit_code: 3,
  duration_ms: 1_234,
  created_at: '2026-11-21T11:59:59.000Z',
  body: 'disk full',
}

function anEvent(
  reason: FlipReason,
  to: 'new' | 'up' | 'down' | 'paused',
  overrides: Partial<NotifiedCheck> = {},
): Event {
  const flip = { reason, from: 'up', to, at: NOON } as Parameters<typeof eventOf>[0]
  const gap = reason === 'outage' ? { startedAt: NOON - 9, endedAt: NOON } : null
  const made = eventOf(flip, { since: NOON - HOUR, detectedAt: NOON + 1, gap })!
  const id = '0199aaaa-0000-7000-8000-00000000000c'
  return { id, type: made.type, at: NOON, facts: made.data, check: CHECK, lastPing: PING, ...overrides } as Event
}

const EVENTS: [string, Event][] = [
  ['check.down, missed', anEvent('missed', 'down')],
  ['check.down, failed', anEvent('failed', 'down')],
  ['check.down, overran', anEvent('overran', 'down')],
  [
    'check.down without a ping and without Kubernetes',
    anEvent('missed', 'down', { lastPing: null, check: { ...CHECK, kubernetes: null } }),
  ],
  [
    'check.down of a ping without facts',
    anEvent('missed', 'down', { lastPing: { ...PING!, exit_code: null, duration_ms: null, body: null } }),
  ],
  ['check.up', anEvent('recovered', 'up')],
  ['check.paused', anEvent('paused', 'paused')],
  ['check.resumed', anEvent('resumed', 'new')],
  ['check.late', { ...anEvent('missed', 'down'), type: 'check.late', facts: lateEvent(NOON, NOON + 1).data } as Event],
  ['check.unknown', anEvent('outage', 'up')],
  ['channel.test', { id: '0199aaaa-0000-7000-8000-00000000000c', type: 'channel.test', at: NOON }],
]

describe('the body of a webhook', () => {
  it.each(EVENTS)('is what the document says: %s', (_, event) => {
    const payload = JSON.parse(renderPayload(event, links))
    expect(schema.safeParse(payload)).toEqual({ success: true, data: payload })
    expect(WebhookPayload.parse(payload)).toEqual(payload)
  })

  it.each<[string, (payload: Record<string, unknown>) => void]>([
    ['another version', (payload) => (payload.version = 2)],
    ['an unknown type', (payload) => (payload.type = 'check.lost')],
    ['the reason of another type', (payload) => ((payload.data as { reason: string }).reason = 'recovered')],
    ['no check', (payload) => delete (payload.data as { check?: unknown }).check],
    ['a field that is not described', (payload) => ((payload.data as { public_id?: string }).public_id = 'x')],
  ])('is not one with %s', (_, spoil) => {
    const payload = JSON.parse(renderPayload(EVENTS[0]![1], links))
    spoil(payload)
    expect(schema.safeParse(payload).success).toBe(false)
  })
})

describe('the document', () => {
  it('tells of the headers that a webhook carries', () => {
    const { parameters } = document.webhooks.event.post
    expect(parameters.map(({ name, in: place }: { name: string; in: string }) => [name, place])).toEqual(
      Object.keys(WEBHOOK_HEADERS).map((name) => [name, 'header']),
    )
    expect(Object.keys(WEBHOOK_HEADERS)).toEqual(['webhook-id', 'webhook-timestamp', 'webhook-signature'])
  })

  it('names every kind of event once', () => {
    const names = document.components.schemas.WebhookPayload.oneOf.map(({ $ref }: { $ref: string }) =>
      $ref.split('/').at(-1),
    )
    const types = names.map((name: string) => document.components.schemas[name].properties.type.const)
    expect(types.sort()).toEqual([
      'channel.test',
      'check.down',
      'check.late',
      'check.paused',
      'check.resumed',
      'check.unknown',
      'check.up',
    ])
  })
})
