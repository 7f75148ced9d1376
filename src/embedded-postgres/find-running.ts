/** The embedded PostgreSQL of a service that runs. */

import { join, resolve } from 'node:path'
import { databaseUrl } from './application-database.ts'
import { APPLICATION_ROLE, DATABASE } from './cluster.ts'
import { readIfThere } from './data-folder.ts'
import { readPidFile } from './postmaster.ts'
import { isPostmasterOf } from './processes.ts'

/** The url of the database `heartbeat`, for the role that owns it; null while no server runs on the data folder, or one is starting. */
export async function findRunningPostgres(dataDir: string): Promise<string | null> {
  const path = resolve(dataDir)
  const clusterDir = join(path, 'postgres')
  const { pid, port, status } = await readPidFile(clusterDir)
  const password = (await readIfThere(join(path, 'postgres-password')))?.trim()
  if (status !== 'ready' || !password || !(await isPostmasterOf(pid, clusterDir))) return null
  return databaseUrl(APPLICATION_ROLE, password, port, DATABASE)
}
