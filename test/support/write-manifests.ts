/** `npm run manifests`: writes crds/ and what is made in manifests/. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { renderManifests } from './manifests.ts'

for (const [path, text] of renderManifests()) {
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}
