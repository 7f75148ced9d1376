import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { type PagerdutySettings, pagerdutyConfig } from '../../../src/channels/kinds/pagerduty/config.ts'
import { renderEvent, SUMMARY_LIMIT } from '../../../src/channels/kinds/pagerduty/message.ts'
import { createPagerdutySender } from '../../../src/channels/kinds/pagerduty/send.ts'
import type { HttpResponse } from '../../../src/delivery/http.ts'
import { CHECK_EVENT_TYPES, type Event } from '../../../src/domain/event.ts'
import { aFlipEvent, aLastPing, aTestEvent } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002'
const KEY = 'e93facc04764012d7bfb002500d5d1a6'
const SETTINGS: PagerdutySettings = { kind: 'pagerduty', routing_key: KEY }
const URL = 'https://events.example.com/v2/enqueue'

/** What is posted for an event, and the outcome. */
async function send(event: Event, settings = SETTINGS, response: Partial<HttpResponse> = { status: 202 }) {
  const client = createFakeHttpClient(response)
  const sender = createPagerdutySender({ client, clock: createManualClock(), links })
  const channel = { id: '0197a000-0000-7000-8000-000000000005', name: 'On call', isTrusted: false, settings }
  const outcome = await sender({ channel, event, checkKey: 1 }, new AbortController().signal)
  return { outcome, requests: client.requests, sent: client.requests.map(({ body }) => JSON.parse(String(body))) }
}
const summaryOf = (changes: Parameters<typeof aFlipEvent>[0]) =>
  renderEvent(aFlipEvent(changes), 'trigger', SETTINGS, links).payload.summary

describe('an event to PagerDuty', () => {
  it('of a check that is down opens an incident, with all that is known', async () => {
    const event = aFlipEvent({
      facts: { reason: 'failed', last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 },
      check: {
        description: 'Runbook: https://wiki.example.com/backup',
        labels: { team: 'payments' },
        kubernetes: { cluster: 'default', namespace: 'shop', name: 'nightly-backup' },
      },
      lastPing: aLastPing(),
    })
    const { requests, sent } = await send(event)
    expect(requests).toMatchObject([{ method: 'POST', url: 'https://events.pagerduty.com/v2/enqueue' }])
    expect(sent).toEqual([
      {
        routing_key: KEY,
        event_action: 'trigger',
        dedup_key: '0197a000-0000-7000-8000-000000000002',
        client: 'Heartbeat Operator',
        client_url: LINK,
        links: [{ href: LINK, text: 'Open the check' }],
        payload: {
          summary: 'Nightly backup is down: The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
          source: 'default/shop/nightly-backup',
          severity: 'critical',
          timestamp: '2026-11-21T03:00:00.000Z',
          component: 'nightly-backup',
          group: 'shop',
          class: 'failed',
          custom_details: {
            reason: 'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
            facts: 'Last success: 2026-11-20 03:00:00 UTC\nUsual duration: 12 min 34 s',
            location: 'HeartbeatCheck shop/nightly-backup in cluster default, project shop',
            output: 'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):\ndisk full',
            description: 'Runbook: https://wiki.example.com/backup',
            labels: { team: 'payments' },
          },
        },
      },
    ])
  })

  it("has the output of the event's own ping without a title", async () => {
    const { sent } = await send(aFlipEvent({ lastPing: aLastPing({ created_at: aFlipEvent().facts.occurred_at }) }))
    expect(sent).toMatchObject([{ payload: { custom_details: { output: 'disk full' } } }])
  })

  it('of a check that is up again ends it', async () => {
    const event = aFlipEvent({
      type: 'check.up',
      facts: { reason: 'recovered', status: 'up', down_for_seconds: 7_500, missed_runs: 2 },
    })
    const { sent } = await send(event, { ...SETTINGS, severity: 'warning', url: URL })
    expect(sent).toEqual([
      {
        routing_key: KEY,
        event_action: 'resolve',
        dedup_key: '0197a000-0000-7000-8000-000000000002',
        client: 'Heartbeat Operator',
        client_url: LINK,
        links: [{ href: LINK, text: 'Open the check' }],
        payload: {
          summary: 'Nightly backup is up again after 2 h 5 min: The job reported a success at 2026-11-21 03:00:00 UTC',
          source: 'shop/nightly-backup',
          severity: 'warning',
          timestamp: '2026-11-21T03:00:00.000Z',
          component: 'nightly-backup',
          group: 'shop',
          class: 'recovered',
          custom_details: {
            reason: 'The job reported a success at 2026-11-21 03:00:00 UTC',
            facts: '2 runs were missed',
            location: 'Project shop',
            labels: {},
          },
        },
      },
    ])
  })

  it('of a test opens and ends an incident of its own', async () => {
    const { sent, outcome } = await send(aTestEvent, { ...SETTINGS, severity: 'critical' })
    const test = {
      routing_key: KEY,
      event_action: 'trigger',
      dedup_key: aTestEvent.id,
      client: 'Heartbeat Operator',
      client_url: 'https://heartbeat.example.com/checks',
      links: [{ href: 'https://heartbeat.example.com/checks', text: 'All checks' }],
      payload: {
        summary: 'A test of this channel: A test was requested at 2026-11-21 03:00:00 UTC: the channel works',
        source: 'Heartbeat Operator',
        severity: 'info',
        timestamp: '2026-11-21T03:00:00.000Z',
        custom_details: { reason: 'A test was requested at 2026-11-21 03:00:00 UTC: the channel works' },
      },
    }
    expect(sent).toEqual([test, { ...test, event_action: 'resolve' }])
    expect(outcome).toEqual({ kind: 'delivered', status: 202 })
  })

  it('of a person who has the incident acknowledges it', async () => {
    const { sent, outcome } = await send(aFlipEvent({ type: 'check.acknowledged', facts: { reason: 'acknowledged' } }))
    expect(sent).toMatchObject([{ event_action: 'acknowledge', dedup_key: aFlipEvent().check.id }])
    expect(outcome).toEqual({ kind: 'delivered', status: 202 })
  })

  it('of a test that is refused is not followed by its end', async () => {
    const { sent, outcome } = await send(aTestEvent, SETTINGS, { status: 500 })
    expect(sent).toHaveLength(1)
    expect(outcome).toMatchObject({ kind: 'retry', status: 500 })
  })

  it.each(CHECK_EVENT_TYPES)('of %s is what opens or ends an incident, or none', async (type) => {
    const { sent, outcome } = await send(aFlipEvent({ type }))
    const actions: Partial<Record<typeof type, string>> = {
      'check.down': 'trigger',
      'check.up': 'resolve',
      'check.paused': 'resolve',
    }
    expect(sent.map(({ event_action }) => event_action)).toEqual(type in actions ? [actions[type]] : [])
    if (!(type in actions))
      expect(outcome).toEqual({ kind: 'delivered', status: null, note: `${type} is not sent to PagerDuty` })
  })
})

describe('a summary', () => {
  const rest = summaryOf({ facts: { reason: 'failed', detail: 'x' } }).length - 1

  it('at the limit is whole; beyond it, it loses the end of the reason', () => {
    const detail = 'x'.repeat(SUMMARY_LIMIT - rest)
    expect(summaryOf({ facts: { reason: 'failed', detail } })).toHaveLength(SUMMARY_LIMIT)
    expect(summaryOf({ facts: { reason: 'failed', detail } })).toMatch(/^Nightly backup is down: .*x$/)
    const longer = summaryOf({ facts: { reason: 'failed', detail: `${detail}x` } })
    expect(longer).toHaveLength(SUMMARY_LIMIT)
    expect(longer).toMatch(/^Nightly backup is down: .*x…$/)
  })

  it('is well-formed and within the limits, as the whole event, whatever its texts are', () => {
    const anyText = (maxLength: number) =>
      fc.string({ unit: fc.constantFrom('<', '@', 'here', '"', '\\', '\u0000', '🔥', '\ud800', 'é', '\n'), maxLength })
    fc.assert(
      fc.property(anyText(100), anyText(1_024), anyText(4_096), (name, detail, body) => {
        const event = aFlipEvent({
          facts: { reason: 'failed', detail },
          check: { name, description: body },
          lastPing: aLastPing({ body }),
        })
        const rendered = renderEvent(event, 'trigger', SETTINGS, links)
        expect(rendered.payload.summary.length).toBeLessThanOrEqual(SUMMARY_LIMIT)
        expect(rendered.payload.summary.isWellFormed()).toBe(true)
        expect(Buffer.byteLength(JSON.stringify(rendered))).toBeLessThan(512 * 1_024)
      }),
      { numRuns: 100 },
    )
  })
})

it.each(['<!channel>', '<@U0123456>', '@everyone', '@bob', '[x](https://evil.example)', '<https://evil.example|x>'])(
  'untrusted text makes no mention and no link where PagerDuty passes it on: %s',
  (nasty) => {
    const event = aFlipEvent({
      facts: { reason: 'failed', detail: nasty },
      check: { name: nasty, description: nasty },
      lastPing: aLastPing({ body: nasty }),
    })
    const { summary, custom_details } = renderEvent(event, 'trigger', SETTINGS, links).payload
    for (const text of [summary, ...Object.values(custom_details)]) expect(text).not.toContain(nasty)
  },
)

describe('a response', () => {
  it.each<[Partial<HttpResponse>, object]>([
    [{ status: 429 }, { kind: 'retry', retryAfterMs: 30_000 }],
    [
      { status: 429, headers: { 'retry-after': '90' } },
      { kind: 'retry', retryAfterMs: 90_000 },
    ],
    [{ status: 503 }, { kind: 'retry' }],
    [
      { status: 400, text: '{"errors":["\'summary\' is missing"]}' },
      { kind: 'rejected', isOfMessage: true },
    ],
    [
      { status: 400, text: `{"errors":["Invalid routing key: ${KEY}"]}` },
      {
        kind: 'rejected',
        status: 400,
        error:
          'events.pagerduty.com responded 400: {"errors":["Invalid routing key: …"]}; give the channel the key of an integration "Events API v2"',
      },
    ],
  ])('%j is %j', async (response, expected) => {
    const { outcome } = await send(aFlipEvent(), SETTINGS, response)
    expect(outcome).toMatchObject(expected)
    if (response.status === 503) expect(outcome).not.toHaveProperty('retryAfterMs')
  })
})

describe('the config', () => {
  const { toSettings, show } = pagerdutyConfig
  const stored: PagerdutySettings = { ...SETTINGS, severity: 'error', url: `${URL}/s3cret` }

  it('is shown without its secrets, and without what it leaves out', () => {
    expect(show(SETTINGS)).toEqual({ routing_key: '…' })
    expect(show(stored)).toEqual({ routing_key: '…', severity: 'error', url: 'https://events.example.com/…' })
  })

  it('that is sent back as it was shown keeps its values', () => {
    for (const settings of [SETTINGS, stored]) expect(toSettings(show(settings), settings)).toEqual(settings)
  })

  it('replaces what is stored', () => {
    expect(toSettings({ routing_key: 'another key' }, stored)).toEqual({ ...SETTINGS, routing_key: 'another key' })
  })

  it('has the key again for another address', () => {
    for (const [config, before] of [
      [{ routing_key: '…', url: 'https://evil.example/' }, stored],
      [{ routing_key: '…', url: 'https://evil.example/' }, SETTINGS],
      [{ routing_key: '…' }, stored],
      [{ routing_key: '…' }, null],
    ] as const)
      expect(() => toSettings(config, before)).toThrow(
        expect.objectContaining({ code: 'invalid_request', field: 'config.routing_key' }),
      )
  })

  it('sends to its URL, else to PagerDuty', () => {
    expect(pagerdutyConfig.urlsOf(SETTINGS)).toEqual([{ url: 'https://events.pagerduty.com/v2/enqueue', field: 'url' }])
    expect(pagerdutyConfig.urlsOf({ ...SETTINGS, url: URL })).toEqual([{ url: URL, field: 'url' }])
  })
})
