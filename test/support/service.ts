/** The product as tests meet it: on real sockets, over a database of its own. */

import { randomUUID } from 'node:crypto'
import { createAuthenticate } from '../../src/auth/authenticate.ts'
import { createTokens } from '../../src/auth/tokens.ts'
import type { ChannelContext } from '../../src/channels/context.ts'
import { createSealer } from '../../src/channels/seal.ts'
import { createCheckCache } from '../../src/checks/ping/cache.ts'
import { createPingRecorder, type Ping } from '../../src/checks/ping/record.ts'
import type { Caller, Scope } from '../../src/domain/access.ts'
import { API_PREFIX, type ApiParts, createApiApp } from '../../src/http/api/app.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Context } from '../../src/store/context.ts'
import { createApiKey } from '../../src/tenancy/api-keys.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { type ApiClient, createApiClient } from './api-client.ts'
import { createTestDatabase } from './database.ts'
import { silentLog } from './silent-log.ts'
import { addTenant } from './tenant.ts'

/** An organization with one project, and a key of each scope for the whole of it. */
export interface TestOrganization {
  readonly organizationId: string
  readonly project: string
  readonly keys: Readonly<Record<Scope, string>>
}

export interface TestApi extends TestOrganization, AsyncDisposable {
  /** Base address, with /api/v1. */
  readonly url: string
  readonly database: Context['database']
  readonly context: ChannelContext
  readonly admin: { readonly email: string; readonly password: string }
  /** Calls with the admin key by default. */
  readonly client: ApiClient
  /** Another organization, of which the first one knows nothing. */
  addOrganization(): Promise<TestOrganization>
  /** Records a success by default. */
  ping(publicId: string, ping?: Partial<Ping>): Promise<void>
  /** From now on the service's clock is this much later still. */
  moveClock(ms: number): void
  close(): Promise<void>
}

const SECRET_KEY = Buffer.alloc(32, 7)
const ADMIN = { email: 'admin@example.com', password: 'correct horse battery' }

export async function startTestApi(overrides: Partial<ApiParts> = {}): Promise<TestApi> {
  const { database, close: closeDatabase } = await createTestDatabase()
  let offsetMs = 0
  const context: ChannelContext = {
    database,
    clock: { now: () => systemClock.now() + offsetMs },
    sealer: createSealer(SECRET_KEY),
  }
  const { projectId: project } = await bootstrap(context, ADMIN)
  const tokens = createTokens(SECRET_KEY, context.clock)
  const { rows } = await database.query<{ id: string }>('select id from organizations')
  const organization = await addKeys(context, rows[0]!.id, project)

  const recorder = createPingRecorder({
    database,
    cache: createCheckCache(),
    now: context.clock.now,
    onGroup: () => {},
    onError: (error) => {
      throw error
    },
  })

  let url = ''
  const app = createApiApp({
    context,
    tokens,
    authenticate: createAuthenticate(context, tokens),
    rateLimitPerMinute: 1_000_000,
    baseUrl: () => url,
    log: silentLog,
    isStopping: () => false,
    ...overrides,
  })
  const server = createHttpServer({
    name: 'api',
    handler: app.callback(),
    bindAddress: '127.0.0.1',
    port: 0,
    errorText: (error) => ({ type: 'application/json; charset=utf-8', text: JSON.stringify({ error }) }),
  })
  const { port } = await server.listen()
  url = `http://127.0.0.1:${port}${API_PREFIX}`
  const close = async () => {
    await server.close(0)
    await recorder.stop()
    await closeDatabase()
  }
  return {
    ...organization,
    url,
    database,
    context,
    admin: ADMIN,
    client: await createApiClient(url, organization.keys.admin),
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
  const caller: Caller = { kind: 'user', id: randomUUID(), organizationId, projectId: null, scope: 'admin' }
  const makeKey = async (scope: Scope) => (await createApiKey(context, caller, { name: scope, scope })).key
  const keys = { read: await makeKey('read'), write: await makeKey('write'), admin: await makeKey('admin') }
  return { organizationId, project, keys }
}
