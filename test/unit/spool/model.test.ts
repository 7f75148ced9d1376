import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Spool } from '../../../src/spool/spool.ts'
import { createRandom } from '../../support/random.ts'
import { createStage, EVERYTHING } from './stage.ts'

/**
 * Random lives of a spool against a list: appends at the same time, reads, forgets, restarts, kill -9 and loss of power after
 * any operation of the file system, even in the middle of a write. What was acknowledged and not forgotten is read once, in order.
 */

const sizes = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 4 })
const step = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('append' as const),
      calls: fc.array(sizes, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('read' as const),
      share: fc.nat(100),
      records: fc.integer({ min: 1, max: 9 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('forget' as const), share: fc.nat(110) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constantFrom('kill' as const, 'crash' as const),
      calls: fc.array(sizes, { minLength: 1, maxLength: 4 }),
      after: fc.nat(9),
      isAtStart: fc.boolean(),
      part: fc.integer({ min: 1, max: 80 }),
    }),
  },
)

it('a spool holds what it has acknowledged', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.nat(), async (steps, seed) => {
      const random = createRandom(seed)
      const { files, open } = createStage({ segmentBytes: 400, maxBytes: 4_000 })
      let spool = await open()
      const { id } = spool
      /** What is acknowledged or was read, and which positions were ever seen. */
      const stored = new Map<number, string>()
      const tried = new Set<string>()
      let forgotten = 0
      let highest = 0
      let count = 0

      const newRecord = (size: number) => {
        const record = `${count++}:`.padEnd(size, '.')
        tried.add(record)
        return Buffer.from(record)
      }
      const append = (call: readonly number[]) => {
        const records = call.map(newRecord)
        return spool.append(records).then(
          (positions) => {
            for (const [index, position] of positions.entries()) {
              expect(position).toBeGreaterThan(highest)
              highest = position
              stored.set(position, String(records[index]))
            }
          },
          (error) => error,
        )
      }
      const wanted = (after: number) => [...stored].filter(([position]) => position > after).sort(([a], [b]) => a - b)
      const readAll = async (from: Spool, after: number) =>
        (await from.read(after, EVERYTHING)).map(({ position, record }): [number, string] => [position, String(record)])

      /** Calls without an answer may be stored or not, but only once, and from now on for good. */
      const reopen = async () => {
        spool = await open()
        expect(spool.id).toBe(id)
        const found = await readAll(spool, forgotten)
        for (const [position, record] of found) {
          if (stored.has(position)) continue
          expect(tried.has(record) && ![...stored.values()].includes(record)).toBe(true)
          expect(position).toBeGreaterThan(highest)
          highest = position
          stored.set(position, record)
        }
        expect(found).toEqual(wanted(forgotten))
      }

      for (const action of steps) {
        if (action.do === 'append') await Promise.all(action.calls.map(append))
        else if (action.do === 'read') {
          const after = Math.max(forgotten, Math.floor((highest * action.share) / 100))
          const limit = { records: action.records, bytes: 100 }
          const found = await spool.read(after, limit)
          const all = wanted(after)
          expect(found.map(({ position, record }) => [position, String(record)])).toEqual(all.slice(0, found.length))
          const sum = found.reduce((bytes, { record }) => bytes + record.length, 0)
          expect(found.length <= 1 || (found.length <= limit.records && sum <= limit.bytes)).toBe(true)
          const next = all[found.length]
          if (next !== undefined)
            expect(found.length === limit.records || sum + next[1].length > limit.bytes).toBe(true)
        } else if (action.do === 'forget') {
          forgotten = Math.max(forgotten, Math.min(highest, Math.floor((highest * action.share) / 100)))
          await spool.forget(forgotten)
          expect(spool.records).toBe(wanted(forgotten).length)
        } else if (action.do === 'restart') {
          await spool.close()
          await reopen()
        } else {
          let left = action.after
          files.mostWritten = action.part
          files.faultOf = () => (left-- > 0 ? undefined : 'KILLED')
          if (action.isAtStart) {
            await spool.close().catch(() => {})
            await open().catch(() => {})
          } else await Promise.all([...action.calls.map(append), spool.forget(forgotten).catch(() => {})])
          files.mostWritten = Number.POSITIVE_INFINITY
          if (action.do === 'kill') files.kill()
          else files.crash(random)
          await reopen()
        }
        if (spool.state !== 'broken') expect(files.used()).toBe(spool.bytes)
      }
      expect(await readAll(spool, forgotten)).toEqual(wanted(forgotten))
    }),
    { numRuns: Number(process.env.SPOOL_RUNS ?? 300) },
  )
})
