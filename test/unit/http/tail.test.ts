import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Tail } from '../../../src/http/tail.ts'

it('has the last bytes of any chunks, and says whether there were more', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.array(fc.uint8Array({ maxLength: 30 })), (size, chunks) => {
      const tail = new Tail(size)
      for (const chunk of chunks) tail.add(Buffer.from(chunk))
      const all = Buffer.concat(chunks)
      expect(tail.bytes()).toEqual(all.subarray(-size))
      expect(tail.isCut()).toBe(all.length > size)
    }),
  )
})

it('copies nothing that comes in one piece', () => {
  const tail = new Tail(5)
  const chunk = Buffer.from('whole')
  tail.add(chunk)
  expect(tail.bytes()).toBe(chunk)
})

it('keeps no chunk, however many come', async () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc')
  const tail = new Tail(65_536)
  const held = addChunks(tail, 4_096)
  // What is allocated while V8 marks outlives one collection.
  await expect
    .poll(() => {
      collectGarbage()
      return held.filter((chunk) => chunk.deref() !== undefined).length
    })
    .toBe(0)
  expect(tail.bytes()).toHaveLength(4_096)
})

/** A function of its own: a local variable of a test that waits would keep the last chunk. */
function addChunks(tail: Tail, count: number): WeakRef<Buffer>[] {
  return Array.from({ length: count }, (_, byte) => {
    const chunk = Buffer.from([byte])
    tail.add(chunk)
    return new WeakRef(chunk)
  })
}
