/** What processes of any role need besides themselves: a database, and an API server whose kubeconfig they may be given. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { createTestDatabase, type TestDatabase } from './database.ts'
import { type FakeCluster, startFakeCluster } from './fake-cluster.ts'
import { databaseEnvironment } from './service-process.ts'
import { makeTempFolder } from './temp-folder.ts'
import { openWorkplace, type Workplace } from './workplace.ts'

export interface RoleStage extends AsyncDisposable {
  readonly testDatabase: TestDatabase
  readonly cluster: FakeCluster
  readonly place: Workplace
  readonly folder: string
  /** Without a kubeconfig of its own nothing is found: HOME holds none. */
  environmentOf(more: Record<string, string>): Record<string, string>
  /** Resolves with its path. */
  writeKubeconfig(server: string): Promise<string>
}

export async function startRoleStage(): Promise<RoleStage> {
  await using stack = new AsyncDisposableStack()
  const testDatabase = await createTestDatabase()
  stack.defer(() => testDatabase.close())
  const cluster = stack.use(await startFakeCluster())
  const place = await openWorkplace(cluster)
  const folder = stack.use(await makeTempFolder()).path
  const kept = stack.move()
  return {
    testDatabase,
    cluster,
    place,
    folder,
    environmentOf: (more) => ({
      ...databaseEnvironment(testDatabase.url),
      HOME: join(folder, 'nobody'),
      KUBERNETES: 'auto',
      WATCH_NAMESPACES: place.name,
      LOG_FORMAT: 'json',
      ...more,
    }),
    async writeKubeconfig(server) {
      const path = join(folder, 'kubeconfig')
      const text = stringify({
        apiVersion: 'v1',
        kind: 'Config',
        'current-context': 'fake',
        clusters: [{ name: 'fake', cluster: { server } }],
        contexts: [{ name: 'fake', context: { cluster: 'fake', namespace: 'default' } }],
      })
      await writeFile(path, text)
      return path
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  }
}
