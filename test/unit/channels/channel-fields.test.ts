/** The fields of a channel in requests: which values are valid, and what the response says about the others. */

import { describe, expect, it } from 'vitest'
import { CHANNEL_KINDS } from '../../../src/domain/channel.ts'
import type { AppError } from '../../../src/domain/errors.ts'
import { CHECK_EVENT_TYPES } from '../../../src/domain/event.ts'
import { NewChannel } from '../../../src/http/api/channels.ts'
import { parsePart } from '../../../src/http/api/faults.ts'

const aWebhook = { kind: 'webhook', name: 'Pager', config: { url: 'https://example.com/hook' } }
const DANGER_RULE = 'must not begin with -, and have no |, % or quotes before the @'
const URL_RULE = 'must be an http or https URL of at most 2048 characters, without white space and without #'
const SERVER_RULE = `${URL_RULE}, and without ? and /notify at the end`
const PEER_RULE = `${URL_RULE}, and without ? and /api/v2/alerts at the end`
const DISCORD_RULE = `${URL_RULE}, and without /slack at the end: remove it, or use the kind slack`
const LABEL_RULE =
  'must have a name of at most 200 letters, digits and _ that begins with a letter or one _, and is not alertname, namespace, check, project or reason'
const BASE_RULE = `${URL_RULE}, and without ?`
const NTFY_RULE = `${URL_RULE}, and without ? and a path: the topic has a field of its own`
const CHAT_RULE =
  'must be the id of a chat, such as -1001234567890, or the @name of a public channel or group, of 4 to 32 letters, digits and _'
const THREAD_RULE = 'must be an integer from 1 to 2147483647'
const BOT_RULE = 'must be the token of a bot, such as 123456789:AAEx…'
const TOPIC_RULE = 'must be 1 to 64 letters, digits, - and _'
const PRIORITY_RULE = 'must be an integer from 1 to 5'
const TOKEN_RULE = 'must be an access token of at most 1000 letters, digits and -, ., _, ~, +, /'
const ROOM_RULE =
  'must be the id of a room, which begins with !, such as !abcdefg:example.com; not an alias, which begins with #. Element shows the id in the settings of the room, under Advanced'
const bot = { token: `123456789:${'x'.repeat(35)}`, chat_id: '@ops_room' }
const room = { homeserver: 'https://matrix.example.com', room_id: '!abcdefg:example.com', token: 'syt_x' }
const VALUE_RULE = 'must be text of 1 to 200 characters, without control characters'
const longUrl = (length: number) => `https://example.com/${'x'.repeat(length - 20)}`
const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index))

const EVENTS_RULE = `must be a list of 1 to ${CHECK_EVENT_TYPES.length} of ${CHECK_EVENT_TYPES.join(', ')}`

/** The fault of a request; undefined when it is valid. */
function faultOf(body: object): AppError | undefined {
  try {
    parsePart('body', NewChannel, body)
    return undefined
  } catch (error) {
    return error as AppError
  }
}

describe('a new channel', () => {
  it.each<[string, string, object]>([
    ['a URL of 2,048 characters', 'webhook', { url: longUrl(2_048) }],
    ['a URL counted in characters', 'webhook', { url: `https://example.com/${'💾'.repeat(2_028)}` }],
    ['credentials with an escape', 'webhook', { url: 'https://user:%25@example.com/' }],
    ['a workflow of 2,048 characters', 'teams', { url: longUrl(2_048) }],
    ['a space of 2,048 characters', 'googlechat', { url: longUrl(2_048) }],
    ['a webhook of 2,048 characters', 'discord', { url: longUrl(2_048) }],
    ['ten peers', 'alertmanager', { urls: many(10, (index) => `http://am-${index}:9093`) }],
    [
      'twenty labels',
      'alertmanager',
      { urls: ['http://am'], labels: Object.fromEntries(many(20, (index) => [`l${index}`, 'x'])) },
    ],
    [
      'a label of 200 characters',
      'alertmanager',
      { urls: ['http://am'], labels: { ['l'.repeat(200)]: '💾'.repeat(200) } },
    ],
    [
      'another severity',
      'alertmanager',
      { urls: ['http://am'], labels: { severity: 'page', _x: 'y', constructor: 'z' } },
    ],
    ['private addresses: they are checked when something is sent', 'webhook', { url: 'http://169.254.169.254/' }],
    ['a key of 8 characters', 'pagerduty', { routing_key: 'k'.repeat(8) }],
    ['a key of 255 characters', 'pagerduty', { routing_key: '~'.repeat(255), severity: 'info', url: longUrl(2_048) }],
    [
      'a key of 128 characters and tags of 200',
      'apprise',
      { url: 'http://apprise:8000/', key: 'k'.repeat(128), tag: `a, ${'b'.repeat(197)}` },
    ],
    ['services of 1,000 characters', 'apprise', { url: 'https://a.example', urls: `json://${'x'.repeat(1_000)}` }],
    ['the shortest token of a bot', 'telegram', { ...bot, token: `1:${'x'.repeat(30)}` }],
    ['the longest token of a bot', 'telegram', { ...bot, token: `${'1'.repeat(16)}:${'-_'.repeat(30)}` }],
    ['the shortest name of a chat', 'telegram', { ...bot, chat_id: '@abcd' }],
    ['the longest name of a chat', 'telegram', { ...bot, chat_id: `@${'a'.repeat(32)}` }],
    ['the id of a chat as a number', 'telegram', { ...bot, chat_id: -999_999_999_999_999 }],
    ['the id of a chat as text', 'telegram', { ...bot, chat_id: '-999999999999999' }],
    ['the first topic', 'telegram', { ...bot, thread_id: 1 }],
    ['the last topic', 'telegram', { ...bot, thread_id: 2_147_483_647 }],
    ['a server below a path', 'telegram', { ...bot, url: 'https://example.com/telegram/' }],
    ['the shortest topic', 'ntfy', { topic: '-' }],
    ['the longest topic', 'ntfy', { topic: '_'.repeat(64) }],
    ['a server of its own', 'ntfy', { topic: 'x', url: 'https://user:password@ntfy.example.com:8443/', priority: 1 }],
    ['the highest priority', 'ntfy', { topic: 'x', token: `tk_${'x'.repeat(997)}`, priority: 5 }],
    ['a room of version 12', 'matrix', { ...room, room_id: '!31hneApxJ_1o-63DmFrpeqnkFfWppnzWso1JvH3ogLM' }],
    ['the longest id of a room', 'matrix', { ...room, room_id: `!${'x'.repeat(254)}` }],
    ['a homeserver below a path', 'matrix', { ...room, homeserver: 'https://example.com/matrix' }],
    ['twenty recipients', 'email', { to: many(20, (index) => `user${index}@example.com`) }],
  ])('may have %s', (_, kind, config) => {
    expect(faultOf({ ...aWebhook, kind, config })).toBeUndefined()
  })

  it.each<[string, object, string, string]>([
    ['webhook', {}, 'config.url', 'is required'],
    ['webhook', { url: null }, 'config.url', 'cannot be null'],
    ['webhook', { url: longUrl(2_049) }, 'config.url', URL_RULE],
    ['webhook', { url: 'example.com/hook' }, 'config.url', URL_RULE],
    ['webhook', { url: 'ftp://example.com/hook' }, 'config.url', URL_RULE],
    ['webhook', { url: 'javascript://example.com/%0aalert(1)' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https:///hook' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https:example.com' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://user:password@/hook' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://?x' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://:443/' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com:65536/' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://exa mple.com/' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com/\nhook' }, 'config.url', URL_RULE],
    ['webhook', { url: ' https://example.com/' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com/\u0000' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com/\ud800' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com/#hook' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com/#' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://user:%zz@example.com/' }, 'config.url', URL_RULE],
    ['webhook', { url: 'https://example.com', secret: 'whsec_x' }, 'config.secret', 'is not a known field'],
    ['slack', { url: 'hooks.slack.com' }, 'config.url', URL_RULE],
    ['slack', {}, 'config.url', 'is required'],
    ['slack', { url: 'https://hooks.slack.com/x', to: ['a@example.com'] }, 'config.to', 'is not a known field'],
    ['teams', {}, 'config.url', 'is required'],
    ['teams', { url: longUrl(2_049) }, 'config.url', URL_RULE],
    ['teams', { url: 'https://teams.example.com', sig: 'x' }, 'config.sig', 'is not a known field'],
    ['googlechat', {}, 'config.url', 'is required'],
    ['googlechat', { url: longUrl(2_049) }, 'config.url', URL_RULE],
    ['googlechat', { url: 'https://chat.example.com', token: 'x' }, 'config.token', 'is not a known field'],
    ['discord', {}, 'config.url', 'is required'],
    ['discord', { url: longUrl(2_049) }, 'config.url', DISCORD_RULE],
    ['discord', { url: 'https://discord.com/api/webhooks/1/x/slack' }, 'config.url', DISCORD_RULE],
    ['discord', { url: 'https://discord.com/x', token: 'x' }, 'config.token', 'is not a known field'],
    ['alertmanager', { urls: [] }, 'config.urls', 'must be a list of 1 to 10 URLs'],
    ['alertmanager', { urls: 'http://am' }, 'config.urls', 'must be a list of 1 to 10 URLs'],
    [
      'alertmanager',
      { urls: many(11, (index) => `http://am-${index}:9093`) },
      'config.urls',
      'must be a list of 1 to 10 URLs',
    ],
    ['alertmanager', { urls: ['http://am', 'am'] }, 'config.urls.1', PEER_RULE],
    ['alertmanager', { urls: ['http://am?x=1'] }, 'config.urls.0', PEER_RULE],
    ['alertmanager', { urls: ['http://am/api/v2/alerts'] }, 'config.urls.0', PEER_RULE],
    ['alertmanager', { urls: ['http://am/api/v2/'] }, 'config.urls.0', PEER_RULE],
    ['alertmanager', { urls: ['http://am'], labels: [] }, 'config.labels', 'must be an object of at most 20 labels'],
    ['alertmanager', { urls: ['http://am'], labels: null }, 'config.labels', 'cannot be null'],
    [
      'alertmanager',
      { urls: ['http://am'], labels: Object.fromEntries(many(21, (index) => [`l${index}`, 'x'])) },
      'config.labels',
      'must be an object of at most 20 labels',
    ],
    ...[
      'alertname',
      'namespace',
      'check',
      'project',
      'reason',
      '1x',
      'a-b',
      'a.b',
      'ä',
      '',
      '__name__',
      'l'.repeat(201),
    ].map((label): [string, object, string, string] => [
      'alertmanager',
      { urls: ['http://am'], labels: { [label]: 'x' } },
      `config.labels.${label.length > 100 ? `${label.slice(0, 100)}…` : label}`,
      LABEL_RULE,
    ]),
    ['alertmanager', { urls: ['http://am'], labels: { team: '' } }, 'config.labels.team', VALUE_RULE],
    ['alertmanager', { urls: ['http://am'], labels: { team: 'x'.repeat(201) } }, 'config.labels.team', VALUE_RULE],
    ['alertmanager', { urls: ['http://am'], labels: { team: 'a\u0000' } }, 'config.labels.team', VALUE_RULE],
    ['alertmanager', { urls: ['http://am'], labels: { team: 1 } }, 'config.labels.team', VALUE_RULE],
    ['pagerduty', {}, 'config.routing_key', 'is required'],
    ...['k'.repeat(7), 'k'.repeat(256), 'with white space', 'with"quotes', 'with\\backslash', 'größe-größe', 1].map(
      (routing_key): [string, object, string, string] => [
        'pagerduty',
        { routing_key },
        'config.routing_key',
        'must be 8 to 255 letters, digits and signs of ASCII, without white space, quotes and backslashes',
      ],
    ),
    [
      'pagerduty',
      { routing_key: 'k'.repeat(32), severity: 'high' },
      'config.severity',
      'must be one of critical, error, warning, info',
    ],
    ['pagerduty', { routing_key: 'k'.repeat(32), url: 'events.pagerduty.com' }, 'config.url', URL_RULE],
    ['pagerduty', { routing_key: 'k'.repeat(32), url: longUrl(2_049) }, 'config.url', URL_RULE],
    ['apprise', { key: 'ops' }, 'config.url', 'is required'],
    ...[
      'https://a.example/?x',
      'https://a.example/notify',
      'https://a.example/notify/',
      'https://a.example/notify/ops',
    ].map((url): [string, object, string, string] => ['apprise', { url, key: 'ops' }, 'config.url', SERVER_RULE]),
    ...['', 'k'.repeat(129), 'a/b', 'ä', 1].map((key): [string, object, string, string] => [
      'apprise',
      { url: 'https://a.example', key },
      'config.key',
      'must be 1 to 128 letters, digits, _ and -',
    ]),
    ...['', ' a', ',a', 'b'.repeat(201), 'a;b', 'ä'].map((tag): [string, object, string, string] => [
      'apprise',
      { url: 'https://a.example', key: 'ops', tag },
      'config.tag',
      'must be 1 to 200 letters, digits, spaces and , | _ : + & -, and begin with a letter or a digit',
    ]),
    ...[
      'json://',
      'json:/x',
      '://x',
      'json://a\nb',
      'json://ä',
      'json://"x"',
      'json://a\\b',
      `json://${'x'.repeat(1_001)}`,
    ].map((urls): [string, object, string, string] => [
      'apprise',
      { url: 'https://a.example', urls },
      'config.urls',
      'must be URLs of Apprise (service://...) with commas or spaces between them: ASCII without quotes and backslashes, at most 1000 characters after the first ://',
    ]),
    ['telegram', { chat_id: 1 }, 'config.token', 'is required'],
    ...[
      'x',
      `1:${'x'.repeat(29)}`,
      `1:${'x'.repeat(61)}`,
      `0:${'x'.repeat(35)}`,
      `${'1'.repeat(17)}:${'x'.repeat(35)}`,
      `bot1:${'x'.repeat(35)}`,
      `1:${'x'.repeat(35)}/`,
      1,
    ].map((token): [string, object, string, string] => ['telegram', { ...bot, token }, 'config.token', BOT_RULE]),
    ['telegram', { token: bot.token }, 'config.chat_id', 'is required'],
    ['telegram', { ...bot, chat_id: null }, 'config.chat_id', 'cannot be null'],
    ...[
      'ops_room',
      '@abc',
      `@${'a'.repeat(33)}`,
      '@1abc',
      '@ops-room',
      '',
      '-',
      '1.5',
      '1000000000000000',
      1e15,
      -1e15,
      1.5,
      true,
    ].map((chat_id): [string, object, string, string] => [
      'telegram',
      { ...bot, chat_id },
      'config.chat_id',
      CHAT_RULE,
    ]),
    ...[0, 2_147_483_648, 1.5, '7'].map((thread_id): [string, object, string, string] => [
      'telegram',
      { ...bot, thread_id },
      'config.thread_id',
      THREAD_RULE,
    ]),
    ['telegram', { ...bot, url: 'https://example.com/?x' }, 'config.url', BASE_RULE],
    ['telegram', { ...bot, secret: 'x' }, 'config.secret', 'is not a known field'],
    ['ntfy', {}, 'config.topic', 'is required'],
    ...['', '_'.repeat(65), 'a/b', 'a b', 'ä', 1].map((topic): [string, object, string, string] => [
      'ntfy',
      { topic },
      'config.topic',
      TOPIC_RULE,
    ]),
    ...['https://ntfy.sh/topic', 'https://ntfy.sh//', 'https://ntfy.sh?x', 'ntfy.sh'].map(
      (url): [string, object, string, string] => ['ntfy', { topic: 'x', url }, 'config.url', NTFY_RULE],
    ),
    ...[0, 6, 1.5, '5'].map((priority): [string, object, string, string] => [
      'ntfy',
      { topic: 'x', priority },
      'config.priority',
      PRIORITY_RULE,
    ]),
    ...['', 'x'.repeat(1_001), 'a b', 'a\r\nb', 'ä'].map((token): [string, object, string, string] => [
      'ntfy',
      { topic: 'x', token },
      'config.token',
      TOKEN_RULE,
    ]),
    ['ntfy', { topic: 'x', token: null }, 'config.token', 'cannot be null'],
    ['matrix', { ...room, homeserver: 'matrix.example.com' }, 'config.homeserver', BASE_RULE],
    ['matrix', { ...room, homeserver: 'https://example.com/?x' }, 'config.homeserver', BASE_RULE],
    ...[
      '#room:example.com',
      '@user:example.com',
      '!',
      `!${'x'.repeat(255)}`,
      '!a b:example.com',
      '!ä:example.com',
      1,
    ].map((room_id): [string, object, string, string] => ['matrix', { ...room, room_id }, 'config.room_id', ROOM_RULE]),
    ['matrix', { ...room, token: 'a b' }, 'config.token', TOKEN_RULE],
    ['matrix', { ...room, token: undefined }, 'config.token', 'is required'],
    ['email', { to: [] }, 'config.to', 'must be a list of 1 to 20 e-mail addresses'],
    ['email', { to: 'a@example.com' }, 'config.to', 'must be a list of 1 to 20 e-mail addresses'],
    [
      'email',
      { to: many(21, (index) => `user${index}@example.com`) },
      'config.to',
      'must be a list of 1 to 20 e-mail addresses',
    ],
    ['email', { to: ['a@example.com', 'b'] }, 'config.to.1', 'must be an e-mail address'],
    ['email', { to: ['a@example.com\r\nBcc: b@example.com'] }, 'config.to.0', 'must be an e-mail address'],
    ['email', { to: ['a,b@example.com'] }, 'config.to.0', 'must be an e-mail address'],
    ['email', { to: ['Ann <a@example.com>'] }, 'config.to.0', 'must be an e-mail address'],
    ['email', { to: ['"a b"@example.com'] }, 'config.to.0', 'must be an e-mail address'],
    // L4: to some mail servers these are an option, a command, or another server to relay to.
    ['email', { to: ['-oQx@example.com'] }, 'config.to.0', DANGER_RULE],
    ['email', { to: ['|touch@example.com'] }, 'config.to.0', DANGER_RULE],
    ['email', { to: ['user%evil.com@example.com'] }, 'config.to.0', DANGER_RULE],
    ['email', { to: ["o'brien@example.com"] }, 'config.to.0', DANGER_RULE],
    ['email', { to: ['`id`@example.com'] }, 'config.to.0', DANGER_RULE],
  ])('of the kind %s may not have the config %j', (kind, config, field, message) => {
    expect(faultOf({ ...aWebhook, kind, config })).toMatchObject({
      code: 'invalid_request',
      message: `${field} ${message}`,
      details: [{ path: `body.${field}`, message }],
    })
  })

  it.each<[object, string]>([
    [{ kind: 'constructor' }, `kind must be one of ${CHANNEL_KINDS.join(', ')}`],
    [{ name: undefined }, 'name is required'],
    [{ name: ' ' }, 'name must be text of 1 to 100 characters, without control characters'],
    [{ project_id: 'x' }, 'project_id must be a UUID'],
    [{ events: [] }, `events ${EVENTS_RULE}`],
    [{ events: 'check.down' }, `events ${EVENTS_RULE}`],
    [{ events: ['check.lost'] }, `events.0 must be one of ${CHECK_EVENT_TYPES.join(', ')}`],
    [{ events: ['channel.test'] }, `events.0 must be one of ${CHECK_EVENT_TYPES.join(', ')}`],
    [{ muted: 'yes' }, 'muted must be true or false'],
    [{ muted: null }, 'muted cannot be null'],
    [{ config: undefined }, 'config is required'],
    [{ config: [] }, 'config must be an object'],
    [{ config: null }, 'config cannot be null'],
    [{ config: 'https://example.com' }, 'config must be an object'],
    [{ managed_by: 'api' }, 'managed_by is not a known field'],
  ])('may not have %j', (fields, message) => {
    expect(faultOf({ ...aWebhook, ...fields })).toMatchObject({ code: 'invalid_request', message })
  })
})
