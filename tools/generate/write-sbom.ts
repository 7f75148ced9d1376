/** `npm run sbom`: writes sbom.cdx.json, the software bill of materials of the image. Needs no network. */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { renderSbom } from './sbom.ts'

const root = new URL('../../', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, root), 'utf8')
const listed = execFileSync(
  'npm',
  ['sbom', '--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'],
  {
    cwd: fileURLToPath(root),
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
    stdio: ['ignore', 'pipe', 'inherit'],
  },
)
const sbom = renderSbom(JSON.parse(listed), JSON.parse(read('package-lock.json')), read('Containerfile'))
writeFileSync(new URL('sbom.cdx.json', root), `${JSON.stringify(sbom, null, 2)}\n`)
process.stdout.write(`sbom.cdx.json: ${sbom.components.length} components\n`)
