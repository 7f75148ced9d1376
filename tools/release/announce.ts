/**
 * `node tools/release/announce.ts`: makes the release of the tag on GitHub, with its part of the changelog and the
 * files that name the image by IMAGE_DIGEST. Calls gh, which takes GH_TOKEN.
 */

import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { makeAssets, readVersion } from './assets.ts'
import { readSection } from './changelog.ts'

const version = await readVersion()
const folder = await mkdtemp(join(tmpdir(), 'heartbeat-announce-'))
try {
  const assets = await makeAssets(process.env.IMAGE_DIGEST ?? '', folder)
  const changelog = await readFile(new URL('../../CHANGELOG.md', import.meta.url), 'utf8')
  const notes = join(folder, 'notes.md')
  await writeFile(notes, `${readSection(changelog, version)}\n`)
  const text = ['--verify-tag', '--title', version, '--notes-file', notes]
  const { stdout } = await promisify(execFile)('gh', ['release', 'create', `v${version}`, ...text, ...assets])
  process.stdout.write(stdout)
} finally {
  await rm(folder, { recursive: true })
}
