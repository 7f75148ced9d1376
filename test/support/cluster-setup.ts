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
 * A control plane for each worker of the lane, so that no test sees what another does to the cluster meanwhile. Without its programs, and
 * without Go to build them, the lane fails and says why.
 */
export default async function setup(project: TestProject) {
  const programs = await findPrograms()
  await using stack = new AsyncDisposableStack()
  const planes = await Promise.all(
    Array.from({ length: project.config.maxWorkers }, async () =>
      stack.use(await startControlPlane({ programs, crds: existsSync(CRDS) ? [CRDS] : [] })),
    ),
  )
  project.provide(
    'clusters',
    planes.map(({ server, folder, kubeconfigPath, caPath, adminToken, kubectlPath }) => ({
      server,
      folder,
      kubeconfigPath,
      caPath,
      adminToken,
      kubectlPath,
    })),
  )
  const running = stack.move()
  return () => running.disposeAsync()
}
