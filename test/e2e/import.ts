/** What the document of the import shows for an installed chart. */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'vitest'
import { listBlocksOf } from '../support/documents.ts'
import { writeKumaDatabase } from '../support/kuma-database.ts'
import type { Stage } from './stage.ts'

/** Imports a monitor of Uptime Kuma in a pod, by the commands as they are pasted, into the project of the CronJobs. */
export async function importMonitor(stage: Stage): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'heartbeat-import-'))
  writeKumaDatabase(join(folder, 'kuma.db'), [{ name: 'One' }])
  const commands = listBlocksOf('test/e2e/import.ts').map(({ text }) => text)
  const printed = await stage.shell(`cd ${folder}; ${commands.join('\n')}`)
  await rm(folder, { recursive: true })
  expect(printed).toContain('made 1, there already 0, refused 0, left out 0')
}
