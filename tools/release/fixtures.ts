/**
 * `npm run release:fixtures`, on the commit of a tag: writes test/fixtures/release/, from which the tests of later
 * commits upgrade. The chart as it was released, and a database that its service filled.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { findTool } from '../programs/tools.ts'
import { readVersion } from './assets.ts'

const cwd = fileURLToPath(new URL('../../', import.meta.url))
const fixtures = join(cwd, 'test/fixtures/release')
const run = (command: string, ...args: string[]) => execFileSync(command, args, { cwd, stdio: 'inherit' })

run(process.execPath, 'tools/generate/write-dump.ts')
const folder = mkdtempSync(join(fixtures, '.chart-'))
try {
  run(await findTool('helm'), 'package', 'charts/heartbeat-operator', '--destination', folder)
  renameSync(join(folder, `heartbeat-operator-${await readVersion()}.tgz`), join(fixtures, 'chart.tgz'))
} finally {
  rmSync(folder, { recursive: true })
}
