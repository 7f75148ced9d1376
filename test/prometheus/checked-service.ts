/** Two replicas of the service over one database, with checks in every status. */

import { declareCheck } from '../../src/checks/declare/declare-check.ts'
import { NO_SPEC } from '../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../src/domain/check.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { type ApiClient, createApiClient } from '../support/api-client.ts'
import { API_KEY, PROJECT_ID, type Service } from '../support/service-process.ts'
import { openStage } from '../support/stage.ts'
import { eventually } from '../support/until.ts'

export interface CheckedService {
  readonly replicas: readonly Service[]
  readonly client: ApiClient
  /** Starts a replica more. */
  start(environment?: Record<string, string>): Promise<Service>
  /** Makes a check of the API; with the id to ping it by. Its name is its slug. */
  createCheck(
    name: string,
    fields?: Record<string, unknown>,
  ): Promise<{ readonly id: string; readonly publicId: string }>
  /** As the operator does for a HeartbeatCheck. */
  declare(name: string, resource: { readonly cluster: string; readonly namespace: string }): Promise<string>
  /** `path`: `/start`, `/fail`, an exit code; default: a success. Sent to the first replica that serves. */
  ping(publicId: string, path?: string): Promise<void>
  /** /metrics of the replica that serves the series of the checks. */
  exported(): Promise<string>
  close(): Promise<void>
}

export async function startCheckedService(): Promise<CheckedService> {
  const stage = await openStage()
  const { replicas, startReplica: start } = stage
  const database = createDatabase({ url: stage.url, name: 'test', connections: 2 })
  const [first] = [await start(), await start()]
  const client = await createApiClient(first.api, API_KEY)
  const createCheck = (name: string, fields: Record<string, unknown> = {}) =>
    stage.makeCheck(first, { name, ...fields })

  async function declare(name: string, resource: { readonly cluster: string; readonly namespace: string }) {
    const { check } = await declareCheck(
      { database, clock: systemClock },
      {
        resource: { ...resource, name },
        projectId: PROJECT_ID,
        name,
        ...NO_TEXTS,
        spec: {
          ...NO_SPEC,
          periodSeconds: 3_600,
          graceSeconds: 300,
        },
        suspend: null,
        adoptId: null,
      },
    )
    return check.publicId
  }

  async function ping(publicId: string, path = '') {
    for (const { ping } of replicas) {
      const response = await fetch(`${ping}/ping/${publicId}${path}`).catch(() => null)
      if (response?.status === 200) return
    }
    throw new Error('no replica took the ping')
  }

  async function exported() {
    let found = ''
    await eventually('the series of a late check', async () => {
      for (const { ops } of replicas) {
        const metrics = await (await fetch(`${ops}/metrics`)).text()
        if (/^heartbeat_check_status\{.*status="late"\} 1$/m.test(metrics)) found = metrics
      }
      return found !== ''
    })
    return found
  }

  await createCheck('new-job')
  const paused = await createCheck('paused-job')
  await client.patch(`/checks/${paused.id}/pause`)
  const hourly = await createCheck('hourly-job', { period_seconds: 3_600 })
  await ping(hourly.publicId, '/start')
  await ping(hourly.publicId)
  await ping(hourly.publicId, '/start')
  const late = await createCheck('late-job', { period_seconds: 10, grace_seconds: 3_600 })
  await ping(late.publicId)
  const failed = await createCheck('failed-job')
  await ping(failed.publicId, '/1')
  await ping(await declare('nightly-backup', { cluster: 'default', namespace: 'shop' }), '/fail')
  await ping(await declare('nightly-backup', { cluster: 'east', namespace: 'shop' }))

  return {
    replicas,
    client,
    start,
    createCheck,
    declare,
    ping,
    exported,
    async close() {
      await database.close()
      await stage[Symbol.asyncDispose]()
    },
  }
}
