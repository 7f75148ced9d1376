import { expect, it } from 'vitest'
import { createPacer } from '../../../src/runtime/limiter.ts'
import { settle } from '../../support/until.ts'

it('a pacer lets one caller through in each turn, in order of arrival, also those that come meanwhile', async () => {
  const pace = createPacer()
  const passed: string[] = []
  const pass = (name: string) => pace().then(() => passed.push(name))
  for (const name of ['a', 'b']) void pass(name)
  expect(passed).toEqual([])
  await settle()
  expect(passed).toEqual(['a'])
  void pass('c')
  await settle()
  expect(passed).toEqual(['a', 'b'])
  await settle()
  expect(passed).toEqual(['a', 'b', 'c'])
  await settle()
  await settle()
  void pass('d')
  expect(passed).toHaveLength(3)
  await settle()
  expect(passed).toEqual(['a', 'b', 'c', 'd'])
})
