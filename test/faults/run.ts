/**
 * `npm run faults [-- word ...]`: applies each patch of this folder (whose name holds each word) to a clean copy of the
 * last commit, runs the test that the patch names, and expects it to fail. A patch begins with two lines:
 * `Fault: what breaks` and `Test: --project unit test/unit/x.test.ts -t 'part of a name'`, arguments of vitest. Fails for
 * a fault that no test finds, for a patch that no longer applies, and for a test that fails without its patch.
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

/** Copies that are tested beside each other: a test waits for half of its time. */
const AT_ONCE = 2

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

/** Null: the test passes without the fault, and fails with it. */
async function findProblem(copy: string, { file, test }: Fault): Promise<string | null> {
  if ((await countFailures(copy, test)) !== 0) return `${test} fails without the fault`
  const apply = (...more: string[]) => run('git', ['apply', '-C1', ...more, join(FOLDER, file)], { cwd: copy })
  try {
    await apply()
  } catch {
    return 'the patch no longer applies: make it again for the code of today'
  }
  const failures = await countFailures(copy, test)
  await apply('-R')
  if (failures === 0) return `NOT FOUND by ${test}`
  return failures === null ? `${test} did not run: the fault must be one that loads` : null
}

const words = process.argv.slice(2)
const files = (await readdir(FOLDER)).filter(
  (name) => name.endsWith('.patch') && words.every((word) => name.includes(word)),
)
const faults = await Promise.all(files.sort().map(readFault))
const waiting = [...faults]
const problems: string[] = []

async function work() {
  const copy = await mkdtemp(join(tmpdir(), 'heartbeat-faults-'))
  try {
    await run('git', ['worktree', 'add', '--detach', '--force', copy, 'HEAD'], { cwd: ROOT })
    await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    for (let fault = waiting.shift(); fault !== undefined; fault = waiting.shift()) {
      const problem = await findProblem(copy, fault)
      if (problem !== null) problems.push(`${fault.file}: ${problem}`)
      console.log(`${problem === null ? 'found' : problem}: ${fault.title} (${fault.file})`)
    }
  } finally {
    await run('git', ['worktree', 'remove', '--force', copy], { cwd: ROOT })
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, work))
console.log(`${faults.length - problems.length} of ${faults.length} faults found`)
for (const problem of problems) console.error(problem)
process.exitCode = problems.length === 0 ? 0 : 1
