/** HeartbeatChannels of a namespace, and the Secrets that they name. */

import type { HeartbeatChannelStatus } from '../../src/operator/schema/channel.ts'
import type { Scene } from '../support/operator.ts'
import { openWorkplace, type TestCluster, type Workplace, workIn } from '../support/workplace.ts'

export const LABELS = { 'heartbeat-operator.io/channel': 'true' }

export interface ChannelPlace extends Workplace {
  /** The HeartbeatChecks of the same namespace. */
  readonly checks: Workplace
  putSecret(name: string, value: string, labels?: Record<string, string>): Promise<unknown>
  statusOf(name: string): Promise<HeartbeatChannelStatus>
  /** As the management API shows it. */
  // biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
  channelOf(name: string): Promise<any>
}

export async function openChannelPlace(
  { cluster, app }: Pick<Scene<TestCluster>, 'cluster' | 'app'>,
  annotations?: Record<string, string>,
): Promise<ChannelPlace> {
  const checks = await openWorkplace(cluster, annotations)
  const place = workIn(cluster, checks.name, 'HeartbeatChannel')
  const statusOf = async (name: string) => ((await place.get(name)).status ?? {}) as unknown as HeartbeatChannelStatus
  return {
    ...place,
    checks,
    statusOf,
    putSecret: (name, value, labels = LABELS) =>
      place.put('secrets', {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name, labels },
        data: { value: Buffer.from(value).toString('base64') },
      }),
    async channelOf(name) {
      const { channelId } = await statusOf(name)
      return (await app.call('GET', `/channels/${channelId}`)).body
    },
  }
}

export const slack = (name: string) => ({ slack: { secretRef: { name, key: 'value' } } })
