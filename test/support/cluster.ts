/** The control plane that the tests of this worker share, and what they do with it. A test that disturbs it starts its own. */

import { inject } from 'vitest'
import { openCluster } from './cluster-client.ts'

export { type Cluster, openCluster, type TestNamespace } from './cluster-client.ts'

/** Workers count from 1. */
const access = inject('clusters')[Number(process.env.VITEST_POOL_ID) - 1]!

export const cluster = openCluster(access)
