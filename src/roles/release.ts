/** The command `release`: not a role, but the last step before the operator is uninstalled from a cluster. */

import { createClient } from '../kubernetes/client.ts'
import type { Connection } from '../kubernetes/connection.ts'
import { releaseFinalizers } from '../operator/deletion/release.ts'
import { systemClock } from '../runtime/clock.ts'
import { userAgent } from './user-agent.ts'

export interface ReleaseCommandOptions {
  readonly connection: Connection
  /** Null: all of them. */
  readonly namespaces: readonly string[] | null
  /** The id of another installation whose resources are released too. */
  readonly takeOver: string | null
  readonly say: (line: string) => void
  readonly signal: AbortSignal
}

/** Throws ReleaseError when one of our finalizers may be left. */
export async function runRelease({
  connection,
  namespaces,
  takeOver,
  say,
  signal,
}: ReleaseCommandOptions): Promise<void> {
  const client = createClient({ connection, clock: systemClock, userAgent: userAgent('release') })
  try {
    const leaseNamespace = connection.namespace
    await releaseFinalizers({ client, namespaces, leaseNamespace, takeOver, clock: systemClock, say, signal })
  } finally {
    await client.close()
  }
}
