import { expect, it } from 'vitest'
import { selectorText } from '../../../src/domain/label-selector.ts'

it('a selector is written as kubectl takes it', () => {
  const values = (...values: string[]) => ({ key: 'tier', values })
  expect(
    selectorText([
      { operator: 'In', ...values('db') },
      { operator: 'In', ...values('db', 'cache') },
      { operator: 'NotIn', ...values('web') },
      { operator: 'NotIn', ...values('web', 'app') },
      { operator: 'Exists', ...values() },
      { operator: 'DoesNotExist', ...values() },
    ]),
  ).toBe('tier=db,tier in (db,cache),tier!=web,tier notin (web,app),tier,!tier')
  expect(selectorText([])).toBe('')
})
