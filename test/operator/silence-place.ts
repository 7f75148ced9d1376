/** HeartbeatSilences of a namespace, its HeartbeatChecks, and what is sent of these. */

import type { HeartbeatSilenceStatus } from '../../src/operator/schema/silence.ts'
import type { Scene } from '../support/operator.ts'
import { openWorkplace, type TestCluster, type Workplace, workIn } from '../support/workplace.ts'

export interface SilencePlace extends Workplace {
  /** The HeartbeatChecks of the same namespace. */
  readonly checks: Workplace
  statusOf(name: string): Promise<HeartbeatSilenceStatus>
  /** A check of the namespace, as the management API shows it. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
  checkOf(name: string): Promise<any>
  /** The same of the silence of a resource. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
  silenceOf(name: string): Promise<any>
  fail(check: string): Promise<void>
  /** `check.down: delivered`, `check.down: suppressed, silenced by <id>`: of a check, the first one first. */
  sent(check: string): Promise<string[]>
}

/** `receiver`: where a channel of the API sends all events. */
export async function openSilencePlace(
  { cluster, app }: Pick<Scene<TestCluster>, 'cluster' | 'app'>,
  receiver: string,
  given?: Workplace,
): Promise<SilencePlace> {
  const checks = given ?? (await openWorkplace(cluster))
  const { channels } = (await app.call('GET', '/channels')).body
  if (channels.length === 0)
    await app.call('POST', '/channels', { kind: 'webhook', name: 'all', config: { url: receiver } })
  const place = workIn(cluster, checks.name, 'HeartbeatSilence')
  const statusOf = async (name: string) => ((await place.get(name)).status ?? {}) as unknown as HeartbeatSilenceStatus
  const checkOf = async (name: string) => {
    const { status } = await checks.get(name)
    return (await app.call('GET', `/checks/${status!.checkId}`)).body
  }
  return {
    ...place,
    checks,
    checkOf,
    statusOf,
    silenceOf: async (name) => (await app.call('GET', `/silences/${(await statusOf(name)).silenceId}`)).body,
    async fail(check) {
      const { status } = await fetch(`${await checks.pingUrl(check)}/fail`, { method: 'POST' })
      if (status !== 200) throw new Error(`the ping of ${check} was answered ${status}`)
    },
    async sent(check) {
      const { id } = await checkOf(check)
      const { deliveries } = (await app.call('GET', `/deliveries?check_id=${id}`)).body
      return deliveries.toReversed().map(
        // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
        ({ type, status, reason, cause }: any) =>
          `${type}: ${status}${status === 'suppressed' ? `, ${reason} by ${cause?.id}` : ''}`,
      )
    },
  }
}

/** ISO 8601, in so many seconds from now. */
export const atIn = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()

/** A window of a week. */
export const SUNDAYS = { schedule: '0 2 * * 0', timeZone: 'UTC', durationSeconds: 7_200, comment: 'Each Sunday' }
