/**
 * `npm run mutate [-- area ...]`: changes the code of each area (areas.ts), or of these, in thousands of places, one by
 * one, and reports the changes that no test of the area detects. Fails where an area could not be run.
 */

import { spawnSync } from 'node:child_process'
import { AREAS, type AreaName } from './areas.ts'

const names = Object.keys(AREAS) as AreaName[]
const wanted = process.argv.slice(2)
const unknown = wanted.filter((name) => !names.includes(name as AreaName))
if (unknown.length > 0) {
  console.error(`there is no area ${unknown.join(', ')}: the areas are ${names.join(', ')}`)
  process.exit(2)
}

for (const name of names) {
  if (wanted.length > 0 && !wanted.includes(name)) continue
  console.log(`== ${name}`)
  const { status, signal, error } = spawnSync(
    'stryker',
    ['run', 'test/mutation/stryker.json', '--mutate', AREAS[name].mutate.join(',')],
    { stdio: 'inherit', env: { ...process.env, MUTATION_AREA: name } },
  )
  if (error !== undefined) console.error(`stryker could not be started: ${error.message}`)
  if (status !== 0) process.exitCode = 1
  // A signal ends all areas, not this one alone.
  if (signal !== null || error !== undefined) break
}
