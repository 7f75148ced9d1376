/** The end of a CI run says which tests failed, and why. */

import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { makeTempFolder } from '../support/temp-folder.ts'

const SUMMARY = fileURLToPath(new URL('../../.ci/summary.mjs', import.meta.url))
const REPORT = { numPassedTests: 5, numFailedTests: 0, numPendingTests: 0, testResults: [] as object[] }

it('names each failed test with its message, and a lane that failed without one with the end of its output', async () => {
  await using folder = await makeTempFolder()
  const write = (name: string, text: string) => writeFileSync(join(folder.path, name), text)
  const failed = {
    status: 'failed',
    fullName: 'adds up',
    failureMessages: ['\u001b[31mexpected 1 to be 2\u001b[39m\n at a'],
  }
  const file = { name: resolve('test/unit/a.test.ts'), status: 'failed', message: '' }
  const broken = {
    name: resolve('test/db/b.test.ts'),
    status: 'failed',
    message: 'no such module',
    assertionResults: [],
  }
  const testResults = [{ ...file, assertionResults: [failed, { ...failed, status: 'passed' }] }, broken]
  write('one.json', JSON.stringify({ ...REPORT, numFailedTests: 1, testResults }))
  write('two:x.json', JSON.stringify(REPORT))
  write('two:x.log', 'src/a.ts: error TS1\r\n\n')
  write('well.json', JSON.stringify(REPORT))
  const { stdout, status } = spawnSync('node', [SUMMARY, folder.path, 'one:1', 'two:x:2', 'well:0', 'none:0'])
  expect(stdout.toString().split('\n')).toEqual([
    '',
    'FAILED one test/unit/a.test.ts > adds up',
    '  expected 1 to be 2',
    '   at a',
    '',
    'FAILED one test/db/b.test.ts',
    '  no such module',
    '',
    'FAILED two:x: its command ended with status 2, and no test failed',
    '  src/a.ts: error TS1',
    '',
    'FAILED none: its command ended with status 0, and no test failed',
    '',
    '15 passed, 4 failed',
    '',
  ])
  expect(status).toBe(1)
})

it('stays within what the end of a log shows', async () => {
  await using folder = await makeTempFolder()
  const failed = { status: 'failed', fullName: 'x'.repeat(300), failureMessages: [`${'y'.repeat(300)}\n`.repeat(50)] }
  const testResults = [{ name: resolve('a.test.ts'), status: 'failed', assertionResults: Array(40).fill(failed) }]
  writeFileSync(join(folder.path, 'one.json'), JSON.stringify({ ...REPORT, numFailedTests: 40, testResults }))
  const lines = spawnSync('node', [SUMMARY, folder.path, 'one:1']).stdout.toString().trimEnd().split('\n')
  expect(lines.at(-3)).toBe('... and 9 more')
  expect(lines.at(-1)).toBe('5 passed, 40 failed')
  expect(lines.length).toBeLessThan(140)
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(210)
})

it('says nothing but the sum when all is well', async () => {
  await using folder = await makeTempFolder()
  writeFileSync(join(folder.path, 'one.json'), JSON.stringify({ ...REPORT, numPendingTests: 2 }))
  const { stdout, status } = spawnSync('node', [SUMMARY, folder.path, 'one:0'])
  expect([stdout.toString(), status]).toEqual(['5 passed, 0 failed, 2 skipped\n', 0])
})
