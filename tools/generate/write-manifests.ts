/** `npm run manifests`: writes crds/, what is made of the chart, and then manifests/, which is rendered from the chart. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { renderInstallations } from './installations.ts'
import { renderManifests } from './manifests.ts'

for (const render of [renderManifests, renderInstallations])
  for (const [path, text] of await render()) {
    const file = fileURLToPath(new URL(`../../${path}`, import.meta.url))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
