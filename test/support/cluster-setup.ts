import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { startControlPlane } from '../../tools/cluster/control-plane.ts'
import type { ClusterAccess } from '../../tools/cluster/control-plane-access.ts'
import { findPrograms } from '../../tools/programs/find.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** A control plane with the CRDs of `crds/` for each worker; `test/support/cluster.ts` picks that of its worker. */
    clusters: readonly ClusterAccess[]
  }
}

const CRDS = fileURLToPath(new URL('../../crds', import.meta.url))

/**
 * Every project of the run calls this once, in one process but with a module of its own, so the control planes that
 * they share are kept beside the modules.
 */
type Shared = { users: number; starting: Promise<AsyncDisposable & { readonly clusters: readonly ClusterAccess[] }> }
const KEY = Symbol.for('heartbeat-operator.test-clusters')
const shelf = globalThis as { [KEY]?: Shared }

/**
 * A control plane for each worker of the lanes, which run one after the other, so that no test sees what another does
 * to the cluster meanwhile. Without its programs, and without Go to build them, the lane fails and says why.
 */
export default async function setup(project: TestProject) {
  shelf[KEY] ??= { users: 0, starting: start(project.config.maxWorkers) }
  const shared = shelf[KEY]
  shared.users += 1
  project.provide('clusters', (await shared.starting).clusters)
  return async () => {
    shared.users -= 1
    if (shared.users > 0) return
    delete shelf[KEY]
    await (await shared.starting)[Symbol.asyncDispose]()
  }
}

async function start(count: number) {
  const programs = await findPrograms()
  await using stack = new AsyncDisposableStack()
  const planes = await Promise.all(
    Array.from({ length: count }, async () =>
      stack.use(await startControlPlane({ programs, crds: existsSync(CRDS) ? [CRDS] : [] })),
    ),
  )
  const clusters = planes.map(({ server, folder, kubeconfigPath, caPath, adminToken, kubectlPath }) => ({
    ...{ server, folder, kubeconfigPath, caPath, adminToken, kubectlPath },
  }))
  const running = stack.move()
  return { clusters, [Symbol.asyncDispose]: () => running.disposeAsync() }
}
