import { describe, expect, it } from 'vitest'
import type { z } from 'zod'
import { KINDS } from '../../../src/channels/kinds/index.ts'
import type { ConfigField } from '../../../src/channels/kinds/kind.ts'
import { CHANNEL_KINDS } from '../../../src/domain/channel.ts'
import {
  describeFault,
  readConfigForm,
  writeConfigForm,
} from '../../../src/http/dashboard/pages/channels/channel-config.ts'

const EXAMPLES = {
  webhook: { url: 'https://hooks.example.com/?a=b' },
  slack: { url: 'https://hooks.slack.com/services/x' },
  email: { to: ['ops@example.com', 'dba@example.com'] },
  alertmanager: { urls: ['https://a.example.com', 'https://b.example.com'], labels: { team: 'a=b', route: 'c' } },
  teams: { url: 'https://x.environment.api.powerplatform.com/invoke?sv=1.0&sig=x' },
  googlechat: { url: 'https://chat.googleapis.com/v1/spaces/x/messages?key=x&token=y%3D' },
  discord: { url: 'https://discord.com/api/webhooks/1/x' },
  pagerduty: { routing_key: 'k'.repeat(32), severity: 'info', url: 'https://events.example.com/' },
  apprise: { url: 'https://apprise.example.com', key: 'ops', tag: 'a, b' },
  telegram: { token: `1:${'x'.repeat(35)}`, chat_id: '@ops_room', thread_id: 7, url: 'https://telegram.example.com' },
  ntfy: { topic: 'heartbeat', url: 'https://ntfy.example.com', token: 'tk_x', priority: 5 },
  matrix: { homeserver: 'https://matrix.example.com', room_id: '!a:example.com', token: 'syt_x' },
}

describe.each(CHANNEL_KINDS)('the form of the kind %s', (kind) => {
  const { form, input } = KINDS[kind].config

  it('has every field of its config', () => {
    const { shape } = input as unknown as z.ZodObject
    expect(form.map(({ name }) => name)).toEqual(Object.keys(shape))
  })

  it('has an example that is valid', () => {
    const typed = new URLSearchParams(form.map(({ name, example }) => [`config.${name}`, example]))
    expect(input.safeParse(readConfigForm(form, typed)).success).toBe(true)
  })

  it('reads what it has written', () => {
    expect(readConfigForm(form, writeConfigForm(form, EXAMPLES[kind]))).toEqual(EXAMPLES[kind])
  })
})

describe('what was typed', () => {
  const field = { name: 'x', label: 'X', meaning: '', example: '' } as const
  const read = (as: ConfigField['as'], text: string) =>
    (readConfigForm([{ ...field, ...(as && { as }) }], new URLSearchParams({ 'config.x': text })) as { x?: unknown }).x

  it.each([
    [undefined, '  https://a/ ', 'https://a/'],
    [undefined, '  ', undefined],
    ['number', ' 12 ', 12],
    ['number', '-100123', -100_123],
    ['number', 'twelve', 'twelve'],
    ['number', '1.5', '1.5'],
    ['number', ' ', undefined],
    ['lines', 'a\r\n\r\n b \n', ['a', 'b']],
    ['lines', '', []],
    ['pairs', 'a = b = c\r\nd=\n\n', { a: 'b = c', d: '' }],
    ['pairs', 'no sign', { 'no sign': '' }],
    ['pairs', '', {}],
  ] as const)('as %s: %j', (as, text, value) => {
    expect(read(as, text)).toEqual(value)
  })

  it('as pairs has the names of objects as any other', () => {
    expect(Object.keys(read('pairs', '__proto__=a\nconstructor=b') as object)).toEqual(['__proto__', 'constructor'])
  })

  it('has faults that name the line or the pair', () => {
    expect(describeFault({ ...field, as: 'lines' }, '1', 'must be y')).toBe('X, line 2: must be y')
    expect(describeFault({ ...field, as: 'pairs' }, 'team', 'must be y')).toBe('X, team: must be y')
    expect(describeFault(field, '', 'must be y')).toBe('X must be y')
  })
})
