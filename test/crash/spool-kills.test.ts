import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { SpoolRejected } from '../../src/spool/errors.ts'
import { openSpool } from '../../src/spool/open-spool.ts'
import { chooseSeed, createRandom } from '../support/random.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { KILLS } from './kills.ts'

/** The spool by itself, killed while 64 callers append. */

const WRITER = fileURLToPath(new URL('../support/spool-writer.ts', import.meta.url))

const startWriter = (folder: string, name: string) =>
  spawn(process.execPath, [WRITER, folder, name], { stdio: ['ignore', 'pipe', 'inherit'] })

/** Kills the writer when it has written so many lines, and returns all that it wrote. */
async function killAfter(lines: number, writer: ChildProcess): Promise<string[]> {
  const written: string[] = []
  const closed = once(writer, 'close')
  for await (const line of createInterface({ input: writer.stdout! })) {
    written.push(line)
    if (written.length === lines) writer.kill('SIGKILL')
  }
  const [, signal] = await closed
  expect(signal).toBe('SIGKILL')
  return written
}

/** What the files hold, read by other code than that of the spool. */
function readFiles(folder: string): Map<number, string> {
  const found = new Map<number, string>()
  for (const name of readdirSync(folder).filter((name) => name.endsWith('.segment'))) {
    const bytes = readFileSync(join(folder, name))
    let position = Number(bytes.readBigUInt64LE(12))
    for (let at = 40; at < bytes.length; position += 1) {
      const length = bytes.readUInt32LE(at)
      expect(found.has(position)).toBe(false)
      found.set(position, bytes.toString('latin1', at + 12, at + 12 + length))
      at += 12 + length
    }
  }
  return found
}

it(`${KILLS} kills lose nothing that was acknowledged, store nothing twice, and keep the order of each caller`, async () => {
  const seed = chooseSeed()
  const random = createRandom(seed)
  await using folder = await makeTempFolder()
  const path = join(folder.path, 'spool')
  const acknowledged = new Map<number, string>()
  let cutOff = 0
  for (let kill = 0; kill < KILLS; kill += 1) {
    const lines = random.chance(0.2) ? 1 : random.int(2, 2_000)
    for (const line of await killAfter(lines, startWriter(path, `life ${kill}`))) {
      const stored = /^stored (\d+) (.{60})$/.exec(line)
      if (stored !== null) acknowledged.set(Number(stored[1]), stored[2]!)
      if (line.startsWith('problem cut off')) cutOff += 1
      expect(line).not.toMatch(/^problem (damaged|broken)/)
    }
  }
  const problems: string[] = []
  const spool = await openSpool({ folder: path, maxBytes: 2 ** 30, onProblem: ({ kind }) => problems.push(kind) })
  await spool.close()
  const found = readFiles(path)
  const missing = [...acknowledged].filter(([position, record]) => found.get(position) !== record)
  expect(missing, `FUZZ_SEED=${seed}`).toEqual([])
  expect(new Set(found.values()).size).toBe(found.size)
  expect(problems.includes('damaged')).toBe(false)
  const counts = new Map<string, number>()
  for (const [, record] of [...found].sort(([a], [b]) => a - b)) {
    const [caller, count] = record.replace(/\.*$/, '').split(/\/(?=\d+$)/) as [string, string]
    expect(Number(count)).toBe((counts.get(caller) ?? -1) + 1)
    counts.set(caller, Number(count))
  }
  expect(acknowledged.size).toBeGreaterThan(KILLS * 100)
  console.log(`seed ${seed}: ${acknowledged.size} acknowledged, ${found.size} found, ${cutOff} cut off`)
})

it('another process is rejected until the first one is killed, and then the folder is free at once', async () => {
  await using folder = await makeTempFolder()
  const writer = startWriter(folder.path, 'first')
  const open = () => openSpool({ folder: folder.path, maxBytes: 2 ** 30, onProblem: () => {} })
  let attempts = 0
  for await (const line of createInterface({ input: writer.stdout })) {
    if (!line.startsWith('stored') || attempts === 3) continue
    attempts += 1
    await expect(open()).rejects.toThrow(SpoolRejected)
    if (attempts === 3) writer.kill('SIGKILL')
  }
  const spool = await open()
  expect(spool.records).toBeGreaterThan(0)
  // An attempt in the process that has the lock does not end it for others.
  await expect(open()).rejects.toThrow(SpoolRejected)
  const other = spawn(process.execPath, [WRITER, folder.path, 'other'], { stdio: ['ignore', 'ignore', 'pipe'] })
  const [messages, [status]] = await Promise.all([text(other.stderr), once(other, 'close')])
  expect([status, messages]).toEqual([1, expect.stringContaining('another process uses this folder')])
  await spool.close()
})
