/**
 * `node .ci/summary.mjs FOLDER LANE:STATUS...`: sums up what the lanes left in FOLDER: `LANE.json` is the runner's report, `LANE.log` all output.
 * Prints why lanes failed, in fewer lines than a reader of a log's end sees, and `N passed, M failed` last. A lane without a report counts as failed.
 */

import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { stripVTControlCharacters } from 'node:util'

const EXPLAINED = 6
const NAMED = 25
const LINES = 15
const WIDTH = 200

const [folder, ...lanes] = process.argv.slice(2)
const total = { passed: 0, failed: 0, skipped: 0 }
/** Each has a title and the text that explains it. */
const failures = []

for (const [lane, status] of lanes.map((one) => one.split(/:(?=\d+$)/))) {
  const file = join(folder, `${lane}.json`)
  const report = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null
  total.passed += report?.numPassedTests ?? 0
  total.skipped += report?.numPendingTests ?? 0
  const found = report === null ? [] : failuresIn(lane, report)
  // The compiler, the linter, or an error outside of a test: only the output says why, and its end says most.
  if (found.length === 0 && (status !== '0' || report === null || report.numPassedTests === 0)) {
    const log = join(folder, `${lane}.log`)
    const text = existsSync(log) ? linesOf(readFileSync(log, 'utf8')).slice(-LINES).join('\n') : ''
    found.push({ title: `${lane}: its command ended with status ${status}, and no test failed`, text })
  }
  total.failed += found.length
  failures.push(...found)
}

for (const { title, text } of failures.slice(0, EXPLAINED)) {
  console.log(`\nFAILED ${title.slice(0, WIDTH)}`)
  for (const line of linesOf(text).slice(0, LINES)) console.log(`  ${line.slice(0, WIDTH)}`)
}
if (failures.length > EXPLAINED) console.log('')
for (const { title } of failures.slice(EXPLAINED, EXPLAINED + NAMED)) console.log(`FAILED ${title.slice(0, WIDTH)}`)
if (failures.length > EXPLAINED + NAMED) console.log(`... and ${failures.length - EXPLAINED - NAMED} more`)
if (failures.length > 0) console.log('')
const { passed, failed, skipped } = total
console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
if (failures.length > 0) process.exitCode = 1

/** The failed tests, and the files that failed before their tests began. */
function failuresIn(lane, { testResults }) {
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const path = relative(process.cwd(), name)
    const failed = assertionResults.filter((test) => test.status === 'failed')
    if (failed.length === 0 && status === 'failed') return [{ title: `${lane} ${path}`, text: message }]
    return failed.map(({ fullName, failureMessages }) => ({
      title: `${lane} ${path} > ${fullName}`,
      text: failureMessages.join('\n'),
    }))
  })
}

function linesOf(text) {
  return stripVTControlCharacters(text)
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
}
