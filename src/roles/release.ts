/** The command `release`: not a role, but the last step before the operator is uninstalled from a cluster. */

import { createClient } from '../kubernetes/client.ts'
import type { Connection } from '../kubernetes/connection.ts'
import { type ReleaseOptions, releaseFinalizers } from '../operator/deletion/release.ts'
import { systemClock } from '../runtime/clock.ts'
import { userAgent } from './user-agent.ts'

/** Throws ReleaseError when one of our finalizers may be left. */
export async function runRelease(
  connection: Connection,
  options: Pick<ReleaseOptions, 'namespaces' | 'takeOver' | 'say' | 'signal'>,
): Promise<void> {
  const client = createClient({ connection, clock: systemClock, userAgent: userAgent('release') })
  try {
    await releaseFinalizers({ ...options, client, leaseNamespace: connection.namespace, clock: systemClock })
  } finally {
    await client.close()
  }
}
