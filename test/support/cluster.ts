/** The control plane that the tests of the lane share, and what they do with it. A test that disturbs it starts its own. */

import { inject } from 'vitest'
import { openCluster } from './cluster-client.ts'

export { type Cluster, openCluster, type TestNamespace, waitFor } from './cluster-client.ts'

export const cluster = openCluster(inject('cluster'))
