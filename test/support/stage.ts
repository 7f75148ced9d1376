import { createApiClient } from './api-client.ts'
import { createTestDatabase } from './database.ts'
import { query } from './embedded.ts'
import { aPing, ask, type SentPing, sendPing } from './sent-pings.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, type Service, startService } from './service-process.ts'

/** Replicas over a database of their own; a test that disturbs PostgreSQL itself gives the address of its own server. */
export interface Stage extends AsyncDisposable {
  readonly url: string
  /** Those that were started, killed ones included. */
  readonly replicas: readonly Service[]
  startReplica(environment?: Record<string, string>): Promise<Service>
  makeCheck(service: Service, spec?: object): Promise<StageCheck>
  query(sql: string): Promise<Record<string, unknown>[]>
}

export interface StageCheck {
  readonly id: string
  readonly publicId: string
  /** Returns the status of the response, null without one. */
  ping(from: Service, ping?: Partial<SentPing>): Promise<number | null>
}

export async function openStage(ownServerUrl?: string): Promise<Stage> {
  const database = ownServerUrl === undefined ? await createTestDatabase() : null
  const url = ownServerUrl ?? database!.url
  const services: Service[] = []
  return {
    url,
    replicas: services,
    async startReplica(environment = {}) {
      const service = await startService({ ...databaseEnvironment(url), ...environment })
      services.push(service)
      return service
    },
    async makeCheck(service, spec = {}) {
      const client = await createApiClient(service.api, API_KEY)
      const { body } = await client.post('/checks', { project_id: PROJECT_ID, name: 'Job', ...spec })
      const publicId = body.public_id as string
      const ping = async (from: Service, given: Partial<SentPing> = {}) =>
        (await sendPing(from.ping, aPing(publicId, given))).status
      return { id: body.id as string, publicId, ping }
    },
    query: (sql) => query(url, sql),
    async [Symbol.asyncDispose]() {
      await Promise.all(services.map((service) => service.kill()))
      await database?.close()
    },
  }
}

export const isReady = async ({ ops }: Service) => (await ask(`${ops}/readyz`)).status === 200
