import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { startControlPlane } from '../cluster/control-plane.ts'
import type { ClusterAccess } from '../cluster/control-plane-access.ts'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The control plane that the lane's tests share, with the CRDs of `crds/`. */
    cluster: ClusterAccess
  }
}

const CRDS = fileURLToPath(new URL('../../crds', import.meta.url))

/** One control plane for the lane. Without its programs, and without Go to build them, the lane fails and says why. */
export default async function setup(project: TestProject) {
  const plane = await startControlPlane({ crds: existsSync(CRDS) ? [CRDS] : [] })
  const { server, folder, kubeconfigPath, caPath, adminToken, kubectlPath } = plane
  project.provide('cluster', { server, folder, kubeconfigPath, caPath, adminToken, kubectlPath })
  return () => plane.stop()
}
