import { describe, expect, it } from 'vitest'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { renderPayload } from '../../../src/channels/kinds/webhook/payload.ts'
import type { NotifiedCheck } from '../../../src/domain/event.ts'

const links = createLinks(() => 'https://heartbeat.test/api/v1')
const CHECK_ID = '0197a1b2-0000-7000-8000-00000000000c'

const down: NotifiedCheck = {
  id: '0197a1b2-0000-7000-8000-000000000001',
  type: 'check.down',
  at: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
  facts: {
    reason: 'failed',
    occurred_at: '2026-01-02T03:04:05.678Z',
    detected_at: '2026-01-02T03:04:05.700Z',
    status: 'down',
    previous_status: 'up',
    down_for_seconds: null,
    gap: null,
  },
  check: {
    id: CHECK_ID,
    name: 'Nightly "backup"',
    slug: 'nightly-backup',
    project: { id: '0197a1b2-0000-7000-8000-00000000000d', slug: 'shop' },
    kubernetes: { cluster: 'default', namespace: 'shop', name: 'backup' },
  },
  lastPing: {
    type: 'fail',
    exit_code: 3,
    duration_ms: 1_200,
    created_at: '2026-01-02T03:04:05.678Z',
    body: 'no space left\n\u0000 😀 </script>',
  },
}

describe('the body of a webhook', () => {
  it('is that of the design, in this order', () => {
    expect(renderPayload(down, links)).toBe(
      JSON.stringify({
        version: 1,
        id: '0197a1b2-0000-7000-8000-000000000001',
        type: 'check.down',
        timestamp: '2026-01-02T03:04:05.678Z',
        data: {
          reason: 'failed',
          occurred_at: '2026-01-02T03:04:05.678Z',
          detected_at: '2026-01-02T03:04:05.700Z',
          status: 'down',
          previous_status: 'up',
          down_for_seconds: null,
          gap: null,
          check: {
            id: CHECK_ID,
            name: 'Nightly "backup"',
            slug: 'nightly-backup',
            project: { id: '0197a1b2-0000-7000-8000-00000000000d', slug: 'shop' },
            kubernetes: { cluster: 'default', namespace: 'shop', name: 'backup' },
          },
          last_ping: {
            type: 'fail',
            exit_code: 3,
            duration_ms: 1_200,
            created_at: '2026-01-02T03:04:05.678Z',
            body: 'no space left\n\u0000 😀 </script>',
          },
          links: {
            check: `https://heartbeat.test/api/v1/checks/${CHECK_ID}`,
            pings: `https://heartbeat.test/api/v1/checks/${CHECK_ID}/pings`,
            flips: `https://heartbeat.test/api/v1/checks/${CHECK_ID}/flips`,
          },
        },
      }),
    )
  })

  it('says null where there is nothing', () => {
    const event = { ...down, check: { ...down.check, kubernetes: null }, lastPing: null }
    expect(JSON.parse(renderPayload(event, links)).data).toMatchObject({
      check: { kubernetes: null },
      last_ping: null,
    })
  })

  it('says for how long a check was down', () => {
    const facts = { ...down.facts, reason: 'recovered', status: 'up', previous_status: 'down' } as const
    const event = { ...down, type: 'check.up' as const, facts: { ...facts, down_for_seconds: 3_600 } }
    expect(JSON.parse(renderPayload(event, links))).toMatchObject({
      type: 'check.up',
      data: { reason: 'recovered', status: 'up', previous_status: 'down', down_for_seconds: 3_600 },
    })
  })

  it('is the same to the byte however the parts of the event are ordered', () => {
    const reverse = (value: unknown): unknown =>
      value === null || typeof value !== 'object'
        ? value
        : Object.fromEntries(
            Object.entries(value)
              .reverse()
              .map(([name, part]) => [name, reverse(part)]),
          )
    expect(renderPayload(reverse(down) as NotifiedCheck, links)).toBe(renderPayload(down, links))
  })

  it('holds nothing that it does not name: a public id that came along stays inside', () => {
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

  it('of a test is a message', () => {
    const text = renderPayload({ id: down.id, type: 'channel.test', at: down.at }, links)
    expect(JSON.parse(text)).toEqual({
      version: 1,
      id: down.id,
      type: 'channel.test',
      timestamp: '2026-01-02T03:04:05.678Z',
      data: { message: expect.stringMatching(/^This is a test from Heartbeat Operator\./) },
    })
  })
})

describe('links', () => {
  it.each(['https://heartbeat.test/api/v1', 'https://heartbeat.test/api/v1/'])('stand on %s, as it is now', (base) => {
    let baseUrl = 'http://not-yet'
    const late = createLinks(() => baseUrl)
    baseUrl = base
    expect(late.check('7')).toBe('https://heartbeat.test/api/v1/checks/7')
  })
})
