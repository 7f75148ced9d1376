/** The whole product in this process, as main.ts starts it, over a database of its own: three ports, and what the first start makes. */

import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { PING_TYPES } from '../../src/domain/check.ts'
import type { PasswordCost } from '../../src/domain/password.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Log } from '../../src/runtime/log.ts'
import type { Database } from '../../src/store/postgres/database.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { type Answer, type ApiClient, createApiClient } from './api-client.ts'
import { createTestDatabase } from './database.ts'
import { LOW_COST } from './passwords.ts'
import { silentLog } from './silent-log.ts'

export interface StoredPing {
  readonly type: 'success' | 'start' | 'fail' | 'log'
  readonly exitCode: number | null
  readonly durationMs: number | null
  readonly runId: string | null
  readonly body: Buffer | null
  readonly isBodyTruncated: boolean
}

export interface TestApp extends AsyncDisposable {
  /** `{ping_url}` of the interface. */
  readonly pingUrl: string
  /** `{base_url}` of the interface. */
  readonly apiUrl: string
  /** The same by the address that listens, whatever BASE_URL says. */
  readonly listeningApiUrl: string
  readonly opsUrl: string
  readonly projectId: string
  /** Of an admin. */
  readonly apiKey: string
  readonly logIn: { readonly email: string; readonly password: string }
  readonly database: Database
  /** Calls with the API key by default. */
  readonly client: ApiClient
  /** The same in short, for tests of the operator. */
  call(method: string, path: string, json?: unknown): Promise<Answer>
  /** Makes a check of an hour and five minutes of grace, unless `fields` say otherwise. */
  createCheck(fields?: Record<string, unknown>): Promise<{ id: string; publicId: string }>
  /** What the database holds, oldest first. */
  storedPings(publicId: string): Promise<StoredPing[]>
  close(): Promise<void>
}

export interface TestAppOptions {
  /** Variables of design, section 12, over those of a test. */
  readonly environment?: Record<string, string>
  readonly log?: Log
  /** Default: a low one. Null: the service's own. */
  readonly passwordCost?: PasswordCost | null
  /** Fills the database of the first start, before the service starts. */
  readonly prepare?: (database: Database, secretKey: Buffer) => Promise<void>
  /** The address by which the service reaches its database, for example through a proxy; of the database's own. */
  readonly reach?: (databaseUrl: string) => Promise<string>
}

export async function startTestApp({
  environment = {},
  log = silentLog,
  passwordCost = LOW_COST,
  prepare,
  reach = async (url) => url,
}: TestAppOptions = {}): Promise<TestApp> {
  const { url, database, close: closeDatabase } = await createTestDatabase()
  const databaseUrl = await reach(url)
  const secretKey = Buffer.alloc(32, 7)
  const config = readConfig(
    {
      SPOOL_MAX_BYTES: '0',
      PING_PORT: '0',
      API_PORT: '0',
      OPS_PORT: '0',
      DATABASE_URL: databaseUrl,
      SECRET_KEY: secretKey.toString('base64'),
      ...environment,
    },
    false,
  )
  const { projectId, made } = await bootstrap(
    { database, clock: systemClock, passwordCost: LOW_COST },
    { email: config.bootstrapEmail },
  )
  const { apiKey, email, password } = made!
  await prepare?.(database, secretKey)
  const app = createApp({ config, databaseUrl, secretKey, log, ...(passwordCost === null ? {} : { passwordCost }) })
  const { ping, api, ops: opsUrl, listening } = await app.start()
  const [pingUrl, apiUrl] = [ping!, api!]

  const client = await createApiClient(listening.api!, apiKey)
  const close = async () => {
    await app.stop()
    await closeDatabase()
  }
  return {
    pingUrl,
    apiUrl,
    listeningApiUrl: listening.api!,
    opsUrl,
    projectId,
    apiKey,
    logIn: { email, password },
    database,
    client,
    call: (method, path, json) => client.call(method, path, { json }),
    async createCheck(fields) {
      const standard = { project_id: projectId, name: 'Nightly backup', period_seconds: 3_600, grace_seconds: 300 }
      const { status, body } = await client.post('/checks', { ...standard, ...fields })
      if (status !== 201) throw new Error(`the check was not created: ${status} ${JSON.stringify(body)}`)
      return { id: body.id, publicId: body.public_id }
    },
    async storedPings(publicId) {
      const { rows } = await database.query<StoredPing>(
        `select (array['${PING_TYPES.join("', '")}'])[p.type + 1] as type, p.exit_code as "exitCode",
          p.duration_ms as "durationMs", p.run_id as "runId", b.body,
          b.is_truncated is true as "isBodyTruncated"
        from checks c
        join pings p on p.check_key = c.key
        left join ping_bodies b on b.check_key = p.check_key and b.ping_id = p.id
        where c.public_id = $1 order by p.id`,
        [publicId],
      )
      return rows
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}
