/** The configuration of docs/use/receivers.md, as the real Alertmanager reads it. */

import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { findAlertmanager } from '../../tools/programs/alertmanager-program.ts'
import { listBlocksOf } from '../support/documents.ts'
import { makeTempFolder } from '../support/temp-folder.ts'

it('the Alertmanager takes the configuration with its two receivers', async () => {
  const [{ text } = { text: '' }] = listBlocksOf('test/prometheus/receivers.test.ts')
  await using temp = await makeTempFolder()
  const file = join(temp.path, 'alertmanager.yml')
  await writeFile(file, text)
  // It lies beside the Alertmanager, in Debian's package and in the archive of Prometheus.
  const amtool = join(dirname(await findAlertmanager()), 'amtool')
  const { stdout } = await promisify(execFile)(amtool, ['check-config', file])
  expect(stdout).toContain(' - 2 receivers')
})
