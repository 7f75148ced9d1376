/** A client that knows only docs/reference/interface.md, and functions that move the times of checks. */

import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import type { Answer } from '../../support/api-client.ts'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { eventually } from '../../support/until.ts'

export const aUuid = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/)
/** ISO 8601, UTC. */
export const aTimestamp = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/)
export const aMessage = expect.objectContaining({ error: expect.stringMatching(/./) })
export const LONGEST_MS = 604_800_000

export interface PingInit {
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

export interface Client extends AsyncDisposable {
  readonly app: TestApp
  call(method: string, path: string, json?: unknown): Promise<Answer>
  /** The body of a GET. */
  read(path: string): Promise<Answer['body']>
  /** Gives the status. */
  ping(publicId: string, rest?: string, init?: PingInit): Promise<number>
  aCheck(fields?: Record<string, unknown>): Promise<{ id: string; publicId: string }>
  lastPing(id: string): Promise<Record<string, unknown>>
  /** The reasons of its alerts. An alert is, in this release, the event that is stored with the change of status. */
  alertsOf(id: string): Promise<string[]>
  /** As if everything of the check had happened that much earlier. */
  letPass(id: string, seconds: number): Promise<void>
  /** Waits until the service has certainly looked at every check whose time had come. */
  letServiceLook(): Promise<void>
}

export async function startClient(): Promise<Client> {
  const app = await startTestApp()
  const { database } = app
  const call = (method: string, path: string, json?: unknown) => app.call(method, path, json)
  const read = async (path: string) => (await call('GET', path)).body
  const aCheck = (fields: Record<string, unknown> = {}) => app.createCheck({ name: `Job ${randomUUID()}`, ...fields })

  async function ping(publicId: string, rest = '', init: PingInit = {}): Promise<number> {
    const response = await fetch(`${app.pingUrl}/ping/${publicId}${rest}`, init)
    await response.arrayBuffer()
    return response.status
  }

  async function alertsOf(id: string): Promise<string[]> {
    const { rows } = await database.query<{ reason: string }>(
      `select e.data ->> 'reason' as reason from events e join checks c on c.key = e.check_key
      where c.id = $1 and e.type = 'check.down'`,
      [id],
    )
    return rows.map(({ reason }) => reason)
  }

  async function letPass(id: string, seconds: number): Promise<void> {
    await database.query(
      `update check_states s set last_ping_at = last_ping_at - t, expected_at = expected_at - t, due_at = due_at - t,
        wake_at = wake_at - t
      from checks c, make_interval(secs => $2) t where c.key = s.check_key and c.id = $1`,
      [id, seconds],
    )
  }

  return {
    app,
    call,
    read,
    ping,
    aCheck,
    lastPing: async (id) => (await read(`/checks/${id}/pings?limit=1`)).pings[0],
    alertsOf,
    letPass,
    async letServiceLook() {
      const witness = await aCheck({ period_seconds: 10, grace_seconds: 0 })
      await ping(witness.publicId)
      await letPass(witness.id, 11)
      await eventually('the witness is missed', async () => (await alertsOf(witness.id)).join() === 'missed')
    },
    [Symbol.asyncDispose]: () => app.close(),
  }
}
