/**
 * `npm run faults [-- word ...]`: applies each patch of this folder (whose name holds a word) to a clean copy of the last commit,
 * runs the test that the patch names, and expects it to fail. A patch begins with two lines: `Fault: what breaks` and
 * `Test: --project unit test/unit/x.test.ts -t 'part of a name'`, arguments of vitest. Fails for a fault that no test finds, for a patch that
 * no longer applies, and for a test that fails without its patch.
 */

import { execFile } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const run = promisify(execFile)
const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const FOLDER = fileURLToPath(new URL('.', import.meta.url))

interface Fault {
  readonly file: string
  readonly title: string
  /** Arguments of vitest, as in a shell. */
  readonly test: string
}

async function readFault(file: string): Promise<Fault> {
  const text = await readFile(join(FOLDER, file), 'utf8')
  const [, title, test] = /^Fault: (.+)\nTest: (.+)\n/.exec(text) ?? []
  if (title === undefined || test === undefined) throw new Error(`${file} must begin with "Fault: ..." and "Test: ..."`)
  return { file, title, test }
}

/** How many tests failed; null when the run itself failed, as with a module that cannot be loaded. */
async function countFailures(copy: string, test: string): Promise<number | null> {
  const report = join(copy, '.faults.json')
  await rm(report, { force: true })
  const command = `npx vitest run ${test} --reporter=json --outputFile.json=${report}`
  await run('bash', ['-c', command], { cwd: copy, maxBuffer: 2 ** 26 }).catch(() => {})
  const { numFailedTests, numPassedTests } = JSON.parse(await readFile(report, 'utf8').catch(() => '{}'))
  return numFailedTests + numPassedTests > 0 ? numFailedTests : null
}

const words = process.argv.slice(2)
const files = (await readdir(FOLDER)).filter(
  (name) => name.endsWith('.patch') && words.every((word) => name.includes(word)),
)
const faults = await Promise.all(files.sort().map(readFault))
const copy = await mkdtemp(join(tmpdir(), 'heartbeat-faults-'))
const problems: string[] = []
const clean = new Map<string, boolean>()
try {
  await run('git', ['worktree', 'add', '--detach', '--force', copy, 'HEAD'], { cwd: ROOT })
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, title, test } of faults) {
    if (!clean.has(test)) clean.set(test, (await countFailures(copy, test)) === 0)
    const patch = join(FOLDER, file)
    let problem: string | null = null
    if (clean.get(test) === false) problem = `${test} fails without the fault`
    else {
      const hasApplied = await run('git', ['apply', '-C1', patch], { cwd: copy }).then(
        () => true,
        () => false,
      )
      if (!hasApplied) problem = 'the patch no longer applies: make it again for the code of today'
      else {
        const failures = await countFailures(copy, test)
        if (failures === 0) problem = `NOT FOUND by ${test}`
        if (failures === null) problem = `${test} did not run: the fault must be one that loads`
        await run('git', ['apply', '-C1', '-R', patch], { cwd: copy })
      }
    }
    if (problem !== null) problems.push(`${file}: ${problem}`)
    console.log(`${problem === null ? 'found' : problem}: ${title} (${file})`)
  }
} finally {
  await run('git', ['worktree', 'remove', '--force', copy], { cwd: ROOT })
}
console.log(`${faults.length - problems.length} of ${faults.length} faults found`)
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
