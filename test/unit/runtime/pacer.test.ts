import { expect, it } from 'vitest'
import { createPacer } from '../../../src/runtime/limiter.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

it('a pacer lets one caller through in each turn, in order of arrival, also those that come meanwhile', async () => {
  const pace = createPacer()
  const passed: string[] = []
  const pass = (name: string) => pace().then(() => passed.push(name))
  for (const name of ['a', 'b']) void pass(name)
  expect(passed).toEqual([])
  await turn()
  expect(passed).toEqual(['a'])
  void pass('c')
  await turn()
  expect(passed).toEqual(['a', 'b'])
  await turn()
  expect(passed).toEqual(['a', 'b', 'c'])
  await turn()
  await turn()
  void pass('d')
  expect(passed).toHaveLength(3)
  await turn()
  expect(passed).toEqual(['a', 'b', 'c', 'd'])
})
