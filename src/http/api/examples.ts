/** Examples for /openapi.json, by the id of the operation. Tests compare them with the schemas and with a service. */

import type { WEBHOOK_HEADERS } from './event.schema.ts'
import type { Json } from './openapi-schemas.ts'
import { SILENCES } from './silence-examples.ts'

interface Example {
  readonly body?: Json
  readonly response?: Json | string
}

/** Stands for any id of a path or a query. */
export const EXAMPLE_ID = '0d9af4bb-0c3f-4f0e-9e0a-3b8f3a1c2d10'

const PROJECT_ID = EXAMPLE_ID
const PUBLIC_ID = '5f0c6d1e-9a0b-4c3d-8e2f-7a6b5c4d3e2f'
const CHECK_ID = '01a1ffd6-704f-76e2-8164-e2405742933d'
const CHANNEL_ID = '01a1ffd6-6bba-74f9-98c2-b90b38330784'
const EVENT_ID = '01a1ffd6-784f-73b6-a84b-9e78d9fc783c'
const DELIVERY_ID = '01a1ffd6-7850-7c1a-9f3e-5b6d7e8f9a01'
const USER_ID = '01a1ffd0-1111-7222-8333-944445555666'
const KEY_ID = '01a1ffd0-2222-7333-8444-955556666777'
const PING_ID = '01a1ffd6-7800-7f00-8a00-1b2c3d4e5f60'

const PROJECT = { id: PROJECT_ID, name: 'Shop', slug: 'shop', created_at: '2026-11-02T09:00:00.000Z' }

const PING_KEY = 'k3Jv9XqTz0bRw7LmYc2Dnf'
const BADGE_KEY = 'Zp8sH1uQe6GxN4aKtV5oBr'

const NEW_CHECK = {
  project_id: PROJECT_ID,
  name: 'Shop backup',
  description: 'Dumps the databases of the shop. Ask the team shop.',
  tags: ['team:shop'],
  labels: { team: 'shop', 'app.kubernetes.io/part-of': 'webshop' },
  period_seconds: 86_400,
  grace_seconds: 1_800,
  max_runtime_seconds: 3_600,
  warn_exit_codes: [3],
  remind_every_seconds: 86_400,
}

const CHECK = {
  id: CHECK_ID,
  ...NEW_CHECK,
  slug: 'shop-backup',
  status: 'down',
  status_since: '2026-11-21T02:01:33.512Z',
  status_reason: 'failed',
  status_detail: null,
  schedule: null,
  time_zone: null,
  last_ping_at: '2026-11-21T02:01:33.512Z',
  last_outcome: 'fail',
  last_success_at: '2026-11-20T02:01:31.204Z',
  expected_at: null,
  due_at: null,
  running: 0,
  managed_by: 'api',
  public_id: PUBLIC_ID,
  ping_url: `https://ping.example.com/ping/${PUBLIC_ID}`,
  failures_before_down: 1,
  misses_before_down: 1,
  remind_on_each_run: false,
  resume_on_ping: false,
  channels: null,
  depends_on: ['018f3f7a-9d2b-7c55-8e1a-4b6c7d8e9fa0'],
  flapping: false,
  acknowledged: null,
  last_start_at: '2026-11-21T02:00:00.000Z',
  last_duration_ms: 93_512,
  consecutive_failures: 1,
  consecutive_misses: 0,
  pause: null,
  pings_total: 38,
  created_at: '2026-11-02T09:15:00.000Z',
  updated_at: '2026-11-02T09:15:00.000Z',
  kubernetes: null,
}

const PAUSED_AT = '2026-11-21T20:45:00.000Z'

const PING = {
  id: PING_ID,
  type: 'fail',
  exit_code: 1,
  created_at: '2026-11-21T02:01:33.512Z',
  duration_ms: 93_512,
  run_id: '4a3e8a2c-6c64-4b5d-9d8a-0d4c3b8f7e11',
  body: 'dumping shop ... ok\npg_dump: error: connection to server failed: Connection refused\n',
  body_truncated: false,
  source: 'http',
}

const FLIP = {
  id: '01a1ffd6-7800-7f01-8a00-1b2c3d4e5f61',
  at: '2026-11-21T02:01:33.512Z',
  from: 'up',
  to: 'down',
  reason: 'failed',
  ping_id: PING_ID,
  detail: null,
}

const CHANNEL = {
  id: CHANNEL_ID,
  kind: 'webhook',
  name: 'Deployment log',
  project_id: null,
  events: ['check.down', 'check.up'],
  muted: false,
  after_seconds: 0,
  config: { url: 'https://…@hooks.example.com/heartbeat?…' },
  managed_by: 'api',
  created_at: '2026-11-21T20:40:04.794Z',
}

const SECRET = 'whsec_zNkgReE+jEsWFMCcpB0XDdyeN7L43LPQ9CkzatMpdaI='

const DELIVERY = {
  id: DELIVERY_ID,
  event_id: EVENT_ID,
  type: 'check.down',
  channel_id: CHANNEL_ID,
  check_id: CHECK_ID,
  status: 'pending',
  reason: null,
  cause: null,
  attempts: 1,
  next_attempt_at: '2026-11-21T02:01:45.000Z',
  last_status: 503,
  last_error: 'hooks.example.com answered 503 Service Unavailable; it is retried',
  created_at: '2026-11-21T02:01:33.512Z',
  delivered_at: null,
  digest_id: null,
}

const API_KEY = {
  id: KEY_ID,
  name: 'deploy pipeline',
  prefix: 'hbk_7f3a9c21',
  scope: 'write',
  project_id: PROJECT_ID,
  expires_at: '2036-01-31T12:00:00.000Z',
  last_used_at: '2026-11-21T20:40:00.000Z',
  created_at: '2026-11-02T09:05:00.000Z',
  created_by: { kind: 'user', id: USER_ID, name: 'ada@example.com' },
}

const USER = {
  id: USER_ID,
  email: 'ada@example.com',
  scope: 'write',
  created_at: '2026-11-02T09:10:00.000Z',
  created_by: { kind: 'api_key', id: '01a1ffd0-3333-7444-8555-966667777888', name: 'bootstrap' },
}

const AUDIT_ENTRY = {
  id: '01a1ffd6-7900-7a00-8a00-1b2c3d4e5f62',
  at: '2026-11-21T20:45:00.000Z',
  actor: { kind: 'user', id: USER_ID, name: 'ada@example.com' },
  action: 'check.changed',
  target: { kind: 'check', id: CHECK_ID, name: 'Shop backup' },
  address: '192.0.2.7',
  detail: { changed: ['grace_seconds'] },
}

const LOG_IN = { email: 'ada@example.com', password: 'correct horse battery staple' }

const TOKENS = {
  access_token: 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIwMWExIn0.c2lnbmF0dXJl',
  token_type: 'Bearer',
  expires_in: 900,
  refresh_token: 'hbr_1c8f2d6b9e4a7053',
}

const ACKNOWLEDGED = {
  by: { kind: 'user', id: USER_ID, name: 'ada@example.com' },
  at: '2026-11-21T02:10:00.000Z',
  until: '2026-11-21T04:10:00.000Z',
  comment: 'The disk is being replaced',
}

export const EXAMPLES: Readonly<Record<string, Example>> = {
  listChecks: { response: { checks: [CHECK], next_cursor: null } },
  createCheck: {
    body: NEW_CHECK,
    response: {
      ...CHECK,
      status: 'new',
      status_since: CHECK.created_at,
      status_reason: 'created',
      last_ping_at: null,
      last_outcome: null,
      last_success_at: null,
      last_start_at: null,
      last_duration_ms: null,
      consecutive_failures: 0,
      pings_total: 0,
    },
  },
  getCheck: { response: CHECK },
  updateCheck: {
    body: { name: 'Shop backup', schedule: '0 2 * * *', time_zone: 'Europe/Berlin', grace_seconds: 1_800 },
    response: { ...CHECK, period_seconds: null, schedule: '0 2 * * *', time_zone: 'Europe/Berlin' },
  },
  pauseCheck: {
    body: { for_seconds: 14_400, comment: 'The databases move to another node.' },
    response: {
      ...CHECK,
      status: 'paused',
      status_since: PAUSED_AT,
      status_reason: 'paused',
      pause: {
        by: { kind: 'user', id: USER_ID, name: 'ada@example.com' },
        at: PAUSED_AT,
        until: '2026-11-22T00:45:00.000Z',
        comment: 'The databases move to another node.',
      },
    },
  },
  resumeCheck: {
    response: {
      ...CHECK,
      status: 'new',
      status_reason: 'resumed',
      consecutive_failures: 0,
      expected_at: '2026-11-23T02:01:33.512Z',
      due_at: '2026-11-23T02:31:33.512Z',
    },
  },
  acknowledgeCheck: {
    body: { for_seconds: 7_200, comment: ACKNOWLEDGED.comment },
    response: { ...CHECK, acknowledged: ACKNOWLEDGED },
  },
  unacknowledgeCheck: { response: CHECK },
  listPings: { response: { pings: [PING], next_cursor: null } },
  getPing: { response: PING },
  getPingBody: { response: PING.body },
  listFlips: { response: { flips: [FLIP], next_cursor: null } },

  listChannels: { response: { channels: [CHANNEL], next_cursor: null } },
  createChannel: {
    body: {
      kind: 'webhook',
      name: 'Deployment log',
      events: ['check.down', 'check.up'],
      config: { url: 'https://robot:s3cret@hooks.example.com/heartbeat?team=42' },
    },
    response: { ...CHANNEL, secret: SECRET },
  },
  getChannel: { response: CHANNEL },
  updateChannel: {
    body: { name: 'Deployments', events: ['check.down'] },
    response: { ...CHANNEL, name: 'Deployments', events: ['check.down'] },
  },
  testChannel: { response: { delivery_id: DELIVERY_ID } },
  rotateSecret: { response: { secret: SECRET } },

  ...SILENCES,

  listDeliveries: { response: { deliveries: [DELIVERY], next_cursor: null } },
  getDelivery: { response: DELIVERY },
  retryDelivery: { response: DELIVERY },

  listProjects: { response: { projects: [PROJECT], next_cursor: null } },
  createProject: { body: { name: 'Shop' }, response: PROJECT },
  getProject: { response: PROJECT },
  updateProject: { body: { name: 'Store' }, response: { ...PROJECT, name: 'Store' } },
  getPingKey: { response: { ping_key: PING_KEY } },
  createPingKey: { response: { ping_key: PING_KEY } },
  getBadgeKey: { response: { badge_key: BADGE_KEY } },
  createBadgeKey: { response: { badge_key: BADGE_KEY } },

  listApiKeys: { response: { api_keys: [API_KEY], next_cursor: null } },
  createApiKey: {
    body: { name: 'deploy pipeline', scope: 'write', project_id: PROJECT_ID, expires_at: '2036-01-31T12:00:00Z' },
    response: { ...API_KEY, last_used_at: null, key: 'hbk_7f3a9c21_2b9e4d6f8a1c3e5b7d9f0a2c4e6b8d0f' },
  },

  getApiKey: { response: API_KEY },
  updateApiKey: { body: { name: 'release pipeline' }, response: { ...API_KEY, name: 'release pipeline' } },

  getUser: { response: USER },
  listUsers: { response: { users: [USER], next_cursor: null } },
  createUser: { body: { ...LOG_IN, scope: 'write' }, response: USER },
  updateUser: { body: { scope: 'read' }, response: { ...USER, scope: 'read' } },

  listAudit: { response: { entries: [AUDIT_ENTRY], next_cursor: null } },

  getMe: {
    response: {
      kind: 'user',
      organization: { id: '01a1ffd0-0000-7111-8222-933334444555', name: 'default' },
      user: { id: USER_ID, email: 'ada@example.com' },
      key: null,
      scope: 'write',
      project_id: null,
    },
  },

  changePassword: {
    body: { current_password: LOG_IN.password, new_password: 'four other random words' },
  },
  listSessions: {
    response: {
      sessions: [
        {
          id: '01a1ffd6-7000-7a00-8b00-1c2d3e4f5a6b',
          kind: 'token',
          created_at: '2026-11-21T20:00:00.000Z',
          last_used_at: '2026-11-21T20:40:00.000Z',
          address: '203.0.113.7',
          current: true,
        },
      ],
      next_cursor: null,
    },
  },

  logIn: { body: LOG_IN, response: TOKENS },
  refresh: { body: { refresh_token: TOKENS.refresh_token }, response: TOKENS },
  logOut: { body: { refresh_token: TOKENS.refresh_token } },
  getDocument: { response: { openapi: '3.1.1', info: { title: 'Heartbeat Operator', version: '1' } } },
}

export const WEBHOOK_HEADER_EXAMPLES: Readonly<Record<keyof typeof WEBHOOK_HEADERS, string>> = {
  'webhook-id': EVENT_ID,
  'webhook-timestamp': '1795207293',
  'webhook-signature': 'v1,fkvUNiuWvmq9VUdIZTgxsuRAHnaPsVnmF5Yp545ihwo=',
}

const LINK = `https://heartbeat.example.com/api/v1/checks/${CHECK_ID}`

export const WEBHOOK_EXAMPLE: Json = {
  version: 1,
  id: EVENT_ID,
  type: 'check.down',
  timestamp: '2026-11-21T02:01:33.512Z',
  data: {
    reason: 'failed',
    occurred_at: '2026-11-21T02:01:33.512Z',
    detected_at: '2026-11-21T02:01:33.512Z',
    status: 'down',
    previous_status: 'up',
    down_for_seconds: null,
    flips: null,
    gap: null,
    detail: null,
    check: {
      id: CHECK_ID,
      name: 'Shop backup',
      slug: 'shop-backup',
      tags: ['team:shop'],
      labels: { 'app.kubernetes.io/part-of': 'webshop', team: 'shop' },
      project: { id: PROJECT_ID, slug: 'shop' },
      kubernetes: null,
    },
    last_ping: {
      type: PING.type,
      exit_code: PING.exit_code,
      duration_ms: PING.duration_ms,
      created_at: PING.created_at,
      body: PING.body,
    },
    links: {
      check: LINK,
      pings: `${LINK}/pings`,
      flips: `${LINK}/flips`,
      dashboard: LINK.replace('/api/v1', ''),
      acknowledge: 'https://heartbeat.example.com/ack/AaH_1nBPduKBZOJAV0KTPQGaHPbk6JaGxk1Z8zQ5rWq0f2bNwHc',
    },
  },
}
