import { spawnSync } from 'node:child_process'
import { expect, it } from 'vitest'

it('V8 knows what it is asked: it would complain at each start', () => {
  const module = new URL('../../../src/runtime/young-objects.ts', import.meta.url)
  const program = `const { allocateYoungObjects } = await import('${module}'); allocateYoungObjects()`
  const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program])
  expect([status, stderr.toString()]).toEqual([0, ''])
})
