/** A process that appends to a spool until it is killed, 64 callers at a time, and writes what was acknowledged to its output. */

import { writeSync } from 'node:fs'
import { openSpool } from '../../src/spool/open-spool.ts'

const [, , folder, name] = process.argv as [string, string, string, string]
const CALLERS = 64

writeSync(1, 'opening\n')
const spool = await openSpool({
  folder,
  maxBytes: 2 ** 30,
  // Small, so that many kills meet a change of files.
  segmentBytes: 32_768,
  onProblem: ({ kind, ...problem }) => writeSync(1, `problem ${kind} ${JSON.stringify(problem)}\n`),
})

for (let caller = 0; caller < CALLERS; caller += 1) void call(caller)

async function call(caller: number): Promise<void> {
  for (let count = 0; ; count += 1) {
    const record = `${name}/${caller}/${count}`.padEnd(60, '.')
    const [position] = await spool.append([Buffer.from(record)])
    writeSync(1, `stored ${position} ${record}\n`)
  }
}
