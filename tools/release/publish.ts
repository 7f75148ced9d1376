/**
 * `node tools/release/publish.ts`, after `npm run image -- --push ...`: pushes the chart beside the image, and signs
 * both by the identity of the workflow that runs it (cosign, keyless). The digests become outputs of the step. Needs a
 * login at the registry.
 */

import { execFile } from 'node:child_process'
import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { findTool } from '../programs/tools.ts'
import { makeAssets } from './assets.ts'

const run = promisify(execFile)
/** What `npm run image` wrote. */
const PUSHED = process.env.PUSHED ?? fileURLToPath(new URL('../../dist/pushed.json', import.meta.url))

const image: { repository: string; digest: string } = JSON.parse(await readFile(PUSHED, 'utf8'))
const charts = `${dirname(image.repository)}/charts`
const folder = await mkdtemp(join(tmpdir(), 'heartbeat-publish-'))
try {
  const [archive] = await makeAssets(image.digest, folder)
  const { stdout, stderr } = await run(await findTool('helm'), ['push', archive!, `oci://${charts}`])
  const [, chartDigest] = /^Digest: (sha256:[0-9a-f]{64})$/m.exec(stdout + stderr) ?? []
  if (chartDigest === undefined) throw new Error(`helm push named no digest: ${stdout}${stderr}`)
  const chart = { repository: `${charts}/heartbeat-operator`, digest: chartDigest }
  for (const { repository, digest } of [image, chart]) {
    await run('cosign', ['sign', '--yes', '--recursive', `${repository}@${digest}`])
    process.stdout.write(`pushed and signed ${repository}@${digest}\n`)
  }
  const outputs = `image=${image.repository}\nimage-digest=${image.digest}\nchart=${chart.repository}\nchart-digest=${chart.digest}\n`
  if (process.env.GITHUB_OUTPUT !== undefined) await appendFile(process.env.GITHUB_OUTPUT, outputs)
} finally {
  await rm(folder, { recursive: true })
}
