import { describe, expect, it } from 'vitest'
import type { AlertmanagerSettings } from '../../../src/channels/kinds/alertmanager/config.ts'
import type { DiscordSettings } from '../../../src/channels/kinds/discord/config.ts'
import type { EmailSettings } from '../../../src/channels/kinds/email/config.ts'
import type { GoogleChatSettings } from '../../../src/channels/kinds/googlechat/config.ts'
import { KINDS } from '../../../src/channels/kinds/index.ts'
import type { MatrixSettings } from '../../../src/channels/kinds/matrix/config.ts'
import type { NtfySettings } from '../../../src/channels/kinds/ntfy/config.ts'
import type { SlackSettings } from '../../../src/channels/kinds/slack/config.ts'
import type { TeamsSettings } from '../../../src/channels/kinds/teams/config.ts'
import type { TelegramSettings } from '../../../src/channels/kinds/telegram/config.ts'
import type { WebhookSettings } from '../../../src/channels/kinds/webhook/config.ts'

type Settings =
  | WebhookSettings
  | SlackSettings
  | AlertmanagerSettings
  | EmailSettings
  | DiscordSettings
  | TeamsSettings
  | GoogleChatSettings
  | TelegramSettings
  | NtfySettings
  | MatrixSettings

const secrets = [{ secret: 'whsec_stored', expiresAt: null }]
const webhook = (url: string): WebhookSettings => ({ kind: 'webhook', url, secrets })
const toSettings = (kind: Settings['kind'], config: object, stored: Settings | null) =>
  KINDS[kind].config.toSettings(config, stored)
const show = (settings: Settings) => KINDS[settings.kind].config.show(settings)

describe('the config that is shown', () => {
  it.each([
    ['https://example.com/hook', 'https://example.com/hook'],
    ['https://example.com', 'https://example.com'],
    ['HTTP://Example.com:8080/Hook', 'HTTP://Example.com:8080/Hook'],
    ['https://example.com/hook?token=geheim&x=1', 'https://example.com/hook?…'],
    ['https://example.com?token=geheim', 'https://example.com?…'],
    ['https://user:geheim@example.com/hook', 'https://…@example.com/hook'],
    ['https://geheim@example.com/hook?x', 'https://…@example.com/hook?…'],
    ['https://user:ge@heim@example.com/a@b', 'https://…@example.com/a@b'],
    ['https://example.com/a@b?c@d', 'https://example.com/a@b?…'],
    ['https://example.com/größe', 'https://example.com/größe'],
  ])('of the webhook %s is %s', (url, shown) => {
    expect(show(webhook(url))).toEqual({ url: shown })
  })

  it.each([
    ['https://hooks.slack.com/services/T0/B0/geheim', 'https://hooks.slack.com/…'],
    ['https://user:geheim@chat.example.com:8443/hooks/geheim?x=geheim', 'https://chat.example.com:8443/…'],
    ['http://chat.example.com', 'http://chat.example.com/…'],
  ])('of the Slack webhook %s is %s', (url, shown) => {
    expect(show({ kind: 'slack', url })).toEqual({ url: shown })
  })

  it('of Discord is its host alone', () => {
    const url = 'https://discord.com/api/webhooks/1/geheim?thread_id=2'
    expect(show({ kind: 'discord', url })).toEqual({ url: 'https://discord.com/…' })
  })

  it('of Microsoft Teams is its host alone', () => {
    const url = 'https://x.environment.api.powerplatform.com:443/workflows/geheim/invoke?sv=1.0&sig=geheim'
    expect(show({ kind: 'teams', url })).toEqual({ url: 'https://x.environment.api.powerplatform.com/…' })
  })

  it('of Google Chat is its host alone', () => {
    const url = 'https://chat.googleapis.com/v1/spaces/AAAA/messages?key=geheim&token=geheim'
    expect(show({ kind: 'googlechat', url })).toEqual({ url: 'https://chat.googleapis.com/…' })
  })

  it('of an Alertmanager has no credentials', () => {
    const labels = { team: 'payments' }
    const urls = ['http://user:geheim@am-0:9093', 'http://am-1:9093/prefix']
    expect(show({ kind: 'alertmanager', urls, labels })).toEqual({
      urls: ['http://…@am-0:9093', 'http://am-1:9093/prefix'],
      labels,
    })
  })

  it('of e-mail has its recipients', () => {
    expect(show({ kind: 'email', to: ['a@example.com'] })).toEqual({ to: ['a@example.com'] })
  })
})

describe('the config with a server and a token', () => {
  it.each<[Settings, object]>([
    [
      { kind: 'telegram', token: '1:geheim', chat_id: -1001, thread_id: 7, url: 'https://u:geheim@tg.example.com/bot' },
      { token: '…', chat_id: -1001, thread_id: 7, url: 'https://…@tg.example.com/bot' },
    ],
    [
      { kind: 'telegram', token: '1:geheim', chat_id: '@ops_team' },
      { token: '…', chat_id: '@ops_team' },
    ],
    [
      { kind: 'ntfy', topic: 'ops', url: 'https://u:geheim@ntfy.example.com', token: 'tk_geheim', priority: 5 },
      { topic: 'ops', url: 'https://…@ntfy.example.com', token: '…', priority: 5 },
    ],
    [{ kind: 'ntfy', topic: 'ops' }, { topic: 'ops' }],
    [
      { kind: 'matrix', homeserver: 'https://u:geheim@matrix.example.com', room_id: '!a:b', token: 'geheim' },
      { homeserver: 'https://…@matrix.example.com', room_id: '!a:b', token: '…' },
    ],
  ])('%j is shown without secrets, and has no field that it does not have', (settings, shown) => {
    expect(show(settings)).toStrictEqual(shown)
    expect(KINDS[settings.kind].config.shown.parse(shown)).toStrictEqual(shown)
    expect(toSettings(settings.kind, shown, settings)).toStrictEqual(settings)
  })

  it.each<[Settings, string]>([
    [{ kind: 'telegram', token: '1:x', chat_id: 1 }, 'https://api.telegram.org'],
    [{ kind: 'telegram', token: '1:x', chat_id: 1, url: 'http://10.0.0.1' }, 'http://10.0.0.1'],
    [{ kind: 'ntfy', topic: 'x' }, 'https://ntfy.sh'],
    [{ kind: 'ntfy', topic: 'x', url: 'http://10.0.0.1' }, 'http://10.0.0.1'],
  ])('%j sends to %s', (settings, url) => {
    expect(KINDS[settings.kind].config.urlsOf(settings)).toEqual([{ url, field: 'url' }])
  })
})

describe('a config that is sent back as it was shown', () => {
  const stored: Settings[] = [
    webhook('https://user:geheim@example.com/hook?token=geheim'),
    { kind: 'slack', url: 'https://hooks.slack.com/services/T0/B0/geheim' },
    {
      kind: 'alertmanager',
      urls: ['http://user:geheim@am-0:9093', 'http://user:anders@am-1:9093'],
      labels: { severity: 'warning' },
    },
    { kind: 'email', to: ['a@example.com'] },
    { kind: 'discord', url: 'https://discord.com/api/webhooks/1/geheim' },
    { kind: 'teams', url: 'https://x.environment.api.powerplatform.com:443/invoke?sv=1.0&sig=geheim' },
    { kind: 'googlechat', url: 'https://chat.googleapis.com/v1/spaces/AAAA/messages?key=geheim&token=geheim' },
    { kind: 'telegram', token: '1:geheim', chat_id: '@ops_team', url: 'https://tg.example.com' },
    { kind: 'ntfy', topic: 'ops', token: 'tk_geheim' },
    { kind: 'matrix', homeserver: 'https://matrix.example.com', room_id: '!a:b', token: 'geheim' },
  ]

  it.each(stored)('keeps the stored settings: $kind', (settings) => {
    expect(toSettings(settings.kind, show(settings), settings)).toEqual(settings)
  })

  it('keeps each peer, in any order', () => {
    const urls = ['http://…@am-1:9093', 'http://am-2:9093']
    expect(toSettings('alertmanager', { urls }, stored[2]!)).toEqual({
      kind: 'alertmanager',
      urls: ['http://user:anders@am-1:9093', 'http://am-2:9093'],
      labels: { severity: 'warning' },
    })
  })

  it.each([
    ['webhook', { url: 'https://…@example.com/other?…' }, 'url', stored[0]!],
    ['webhook', { url: 'https://example.com/hook?…' }, 'url', stored[0]!],
    ['webhook', { url: 'https://evil.example/hook?…' }, 'url', null],
    ['slack', { url: 'https://evil.example/…' }, 'url', stored[1]!],
    ['discord', { url: 'https://evil.example/…' }, 'url', stored[4]!],
    ['teams', { url: 'https://evil.example/…' }, 'url', stored[5]!],
    ['googlechat', { url: 'https://evil.example/…' }, 'url', stored[6]!],
    ['alertmanager', { urls: ['http://am-0:9093', 'http://…@evil:9093'] }, 'urls.1', stored[2]!],
    // A token is kept at its own server only: nobody can lead it to another one.
    ['telegram', { token: '…', chat_id: '@ops_team', url: 'https://evil.example' }, 'token', stored[7]!],
    ['telegram', { token: '…', chat_id: '@ops_team' }, 'token', stored[7]!],
    ['telegram', { token: '…', chat_id: '@ops_team' }, 'token', null],
    ['ntfy', { topic: 'ops', token: '…', url: 'https://evil.example' }, 'token', stored[8]!],
    ['ntfy', { topic: 'ops', url: 'https://…@evil.example' }, 'url', stored[8]!],
    ['matrix', { homeserver: 'https://evil.example', room_id: '!a:b', token: '…' }, 'token', stored[9]!],
    ['matrix', { homeserver: 'https://…@evil.example', room_id: '!a:b', token: '…' }, 'homeserver', stored[9]!],
  ] as const)('with a change is rejected: %s %j', (kind, config, field, settings) => {
    const message = 'must be written out: … stands for what is not shown, and the rest is not as it was'
    expect(() => toSettings(kind, config, settings)).toThrow(
      expect.objectContaining({ code: 'invalid_request', message, field: `config.${field}` }),
    )
  })
})

describe('a new config', () => {
  it('replaces the stored one', () => {
    expect(
      toSettings('webhook', { url: 'https://example.com/hook' }, webhook('https://user:x@example.com/hook')),
    ).toEqual(webhook('https://example.com/hook'))
    const stored: AlertmanagerSettings = { kind: 'alertmanager', urls: ['http://am-0:9093'], labels: { team: 'x' } }
    expect(toSettings('alertmanager', { urls: ['http://am-1:9093'], labels: {} }, stored)).toEqual({
      kind: 'alertmanager',
      urls: ['http://am-1:9093'],
      labels: {},
    })
    expect(
      toSettings('email', { to: ['b@example.com'] }, { kind: 'email', to: ['a@example.com'] } as EmailSettings),
    ).toEqual({ kind: 'email', to: ['b@example.com'] })
  })

  it('has a new signing secret for a webhook, and no labels for an Alertmanager', () => {
    expect(toSettings('webhook', { url: 'https://example.com' }, null)).toEqual({
      kind: 'webhook',
      url: 'https://example.com',
      secrets: [{ secret: expect.stringMatching(/^whsec_/), expiresAt: null }],
    })
    expect(toSettings('alertmanager', { urls: ['http://am-0:9093'] }, null)).toMatchObject({ labels: {} })
  })
})
