/** The product as tests meet it: on real sockets, over a database of its own. */

import type { RequestListener } from 'node:http'
import { createAuthenticate } from '../../src/auth/authenticate.ts'
import { createIncidentTokens } from '../../src/auth/incident-tokens.ts'
import { createSignIn } from '../../src/auth/sign-in.ts'
import { createTokens } from '../../src/auth/tokens.ts'
import type { ChannelContext } from '../../src/channels/context.ts'
import { createSealer } from '../../src/channels/seal.ts'
import { createPingRecorder, type Ping } from '../../src/checks/ping/record.ts'
import { createChangeHub } from '../../src/checks/watch-changes.ts'
import { createTargetRule } from '../../src/delivery/targets.ts'
import type { Scope } from '../../src/domain/access.ts'
import type { AuditEntry } from '../../src/domain/audit.ts'
import { API_PREFIX } from '../../src/http/api/app.ts'
import { createFindClientAddress } from '../../src/http/client-address.ts'
import { createLive, type Live } from '../../src/http/dashboard/live.ts'
import { createHostRule } from '../../src/http/head.ts'
import { type ManagementParts, serveManagement } from '../../src/http/management.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import type { Context } from '../../src/store/context.ts'
import { createApiKey } from '../../src/tenancy/api-keys.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { type ApiClient, createApiClient } from './api-client.ts'
import { createTestDatabase } from './database.ts'
import { LOW_COST } from './passwords.ts'
import { silentLog } from './silent-log.ts'
import { addTenant, anAdmin } from './tenant.ts'

/** An organization with one project, and a key of each scope for the whole of it. */
export interface TestOrganization {
  readonly organizationId: string
  readonly project: string
  readonly keys: Readonly<Record<Scope, string>>
}

export interface TestApi extends TestOrganization, AsyncDisposable {
  /** Updates of open pages. */
  readonly live: Live
  /** Base address, with /api/v1. */
  readonly url: string
  readonly database: Context['database']
  readonly context: ChannelContext
  /** Each audit entry after its commit. */
  readonly audited: readonly AuditEntry[]
  readonly admin: { readonly email: string; readonly password: string }
  /** Calls with the admin key by default. */
  readonly client: ApiClient
  /** Makes a check in `project`, unless `fields` say otherwise, and returns the answer. */
  addCheck(fields?: object, key?: string): Promise<Body>
  /** Makes a webhook of the whole organization, unless `fields` say otherwise, and returns the answer. */
  addChannel(fields?: object, key?: string): Promise<Body>
  /** Returns the ids of so many channels of the same settings, in the order of their creation: past every limit. */
  copyChannel(id: string, count: number): Promise<string[]>
  /** Another organization, of which the first one knows nothing. */
  addOrganization(): Promise<TestOrganization>
  /** Records a success by default. */
  ping(publicId: string, ping?: Partial<Ping>): Promise<void>
  /** From now on the service's clock is this much later still. */
  moveClock(ms: number): void
  close(): Promise<void>
}

export const SECRET_KEY = Buffer.alloc(32, 7)
const ADMIN = { email: 'admin@example.com', password: 'correct horse battery' }

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Body = any

type Overrides = Partial<ManagementParts> & {
  /** Of the updates of open pages. */
  readonly clock?: Clock
}

/** `overrides`: of the API and the dashboard. `around`: gets each request before them. */
export async function startTestApi(
  { clock = systemClock, ...overrides }: Overrides = {},
  around: (handler: RequestListener) => RequestListener = (handler) => handler,
): Promise<TestApi> {
  const { database, url: databaseUrl, close: closeDatabase } = await createTestDatabase()
  let offsetMs = 0
  const audited: AuditEntry[] = []
  const context: ChannelContext = {
    database,
    onAudit: (entry) => audited.push(entry),
    clock: { now: () => systemClock.now() + offsetMs },
    sealer: createSealer(SECRET_KEY),
    passwordCost: LOW_COST,
    reach: { findObjection: createTargetRule([]).findObjection, hasSmtp: true },
  }
  const { projectId: project } = await bootstrap(context, ADMIN)
  const tokens = createTokens(SECRET_KEY, context.clock)
  const { rows } = await database.query<{ id: string }>('select id from organizations')
  const organization = await addKeys(context, rows[0]!.id, project)

  const recorder = createPingRecorder({
    database,
    now: context.clock.now,
    onGroup: () => {},
    onError: (error) => {
      throw error
    },
  })

  const throwError = (error: unknown) => {
    throw error
  }
  const changes = createChangeHub({ context, databaseUrl, clock, onProblem: throwError })
  const live = createLive({ context, changes, clock, onProblem: throwError })
  let url = ''
  const served = serveManagement({
    live,
    context,
    tokens,
    incidentTokens: createIncidentTokens(SECRET_KEY, []),
    authenticate: createAuthenticate(context, tokens),
    rateLimitPerMinute: 1_000_000,
    baseUrl: () => url,
    pingUrl: () => 'https://ping.example.com',
    log: silentLog,
    isStopping: () => false,
    findClientAddress: createFindClientAddress([]),
    isPasswordLoginOn: true,
    isDashboardOn: true,
    signIn: createSignIn(context, SECRET_KEY, []),
    kept: null,
    ...overrides,
  })
  const server = createHttpServer({
    ...served,
    handler: around(served.handler),
    bindAddress: '127.0.0.1',
    port: 0,
    isKnownHost: createHostRule('127.0.0.1', [overrides.baseUrl?.() ?? null]),
  })
  const { port } = await server.listen()
  url = `http://127.0.0.1:${port}${API_PREFIX}`
  const close = async () => {
    await live.stop()
    await server.close(0)
    await changes.stop()
    await recorder.stop()
    await closeDatabase()
  }
  const client = await createApiClient(url, organization.keys.admin)
  const make = async (path: string, json: object, key?: string) => {
    const { status, body } = await client.post(path, json, key === undefined ? {} : { key })
    if (status !== 201) throw new Error(`nothing was created: ${status} ${JSON.stringify(body)}`)
    return body
  }
  return {
    ...organization,
    live,
    url,
    database,
    context,
    audited,
    admin: ADMIN,
    client,
    addCheck: (fields, key) => make('/checks', { project_id: project, name: 'Nightly backup', ...fields }, key),
    addChannel: (fields, key) =>
      make(
        '/channels',
        { kind: 'webhook', name: 'Pager', config: { url: 'https://example.com/hook' }, ...fields },
        key,
      ),
    async copyChannel(id, count) {
      const { rows } = await database.query<{ id: string }>(
        `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
          select gen_random_uuid(), organization_id, kind, name, sealed, sealed_with, event_types, created_at + n * interval '1 ms'
          from channels, generate_series(1, $2::int) n where id = $1 returning id`,
        [id, count],
      )
      return rows.map(({ id }) => id)
    },
    async addOrganization() {
      const { organizationId, project } = await addTenant({ database })
      return addKeys(context, organizationId, project)
    },
    async ping(publicId, ping) {
      const standard = { type: 'success', exitCode: 0, durationMs: null, runId: null, body: null } as const
      const result = await recorder.record({ publicId, ...standard, at: context.clock.now(), ...ping })
      if (result !== 'stored') throw new Error(`the ping was not stored: ${result}`)
    },
    moveClock(ms) {
      offsetMs += ms
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

async function addKeys(context: Context, organizationId: string, project: string): Promise<TestOrganization> {
  const caller = anAdmin(organizationId)
  const makeKey = async (scope: Scope) => (await createApiKey(context, caller, { name: scope, scope })).key
  const keys = { read: await makeKey('read'), write: await makeKey('write'), admin: await makeKey('admin') }
  return { organizationId, project, keys }
}
