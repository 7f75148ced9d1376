/** A client that knows only docs/reference/interface.md, and functions that move the times of checks. */

import { randomUUID } from 'node:crypto'
import { expect } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'

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

/** Of a service that the tests of a file share. */
export function useClient() {
  const app = use(startTestApp)
  const call = (method: string, path: string, json?: unknown) => app.client.call(method, path, { json })
  /** The body of a GET. */
  const read = async (path: string) => (await call('GET', path)).body
  const aCheck = (fields: Record<string, unknown> = {}) => app.createCheck({ name: `Job ${randomUUID()}`, ...fields })

  /** Gives the status. */
  async function ping(publicId: string, rest = '', init: PingInit = {}): Promise<number> {
    const response = await fetch(`${app.pingUrl}/ping/${publicId}${rest}`, init)
    await response.arrayBuffer()
    return response.status
  }

  /** The reasons of its alerts. An alert is, in this release, the event that is stored with the change of status. */
  async function alertsOf(id: string): Promise<string[]> {
    const { rows } = await app.database.query<{ reason: string }>(
      `select e.data ->> 'reason' as reason from events e join checks c on c.key = e.check_key
      where c.id = $1 and e.type = 'check.down'`,
      [id],
    )
    return rows.map(({ reason }) => reason)
  }

  /** As if everything of the check had happened that much earlier. */
  async function letPass(id: string, seconds: number): Promise<void> {
    await app.database.query(
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
    lastPing: async (id: string) => (await read(`/checks/${id}/pings?limit=1`)).pings[0],
    alertsOf,
    letPass,
    /** Waits until the service has certainly looked at every check whose time had come. */
    async letServiceLook() {
      const witness = await aCheck({ period_seconds: 10, grace_seconds: 0 })
      await ping(witness.publicId)
      await letPass(witness.id, 11)
      await eventually('the witness is missed', async () => (await alertsOf(witness.id)).join() === 'missed')
    },
  }
}
