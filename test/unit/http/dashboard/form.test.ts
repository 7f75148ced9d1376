import { describe, expect, it } from 'vitest'
import { AppError, invalidField } from '../../../../src/domain/errors.ts'
import { faultsOf } from '../../../../src/http/dashboard/ui/form.ts'

const LABELS = { name: 'Name', period_seconds: 'Every' } as const
const word = (name: string, [item]: readonly string[], message: string) =>
  item === undefined ? null : ([name, `line ${item} ${message}`] as const)
const wrong = (...paths: string[]) =>
  new AppError('invalid_request', 'the body is wrong', {
    details: paths.map((path) => ({ path, message: 'is wrong' })),
  })

describe('the faults of an error', () => {
  it('stand at the inputs, in the words of the form', () => {
    expect(faultsOf(wrong('body.name', 'body.period_seconds'), LABELS)).toEqual({
      name: 'Name is wrong.',
      period_seconds: 'Every is wrong.',
    })
    expect(faultsOf(invalidField('periodSeconds', 'is too long'), LABELS)).toEqual({
      period_seconds: 'Every is too long.',
    })
    const conflict = new AppError('conflict', 'another one has this name', { field: 'name' })
    expect(faultsOf(conflict, LABELS)).toEqual({ name: 'Another one has this name.' })
  })

  it('of one field are said once each, and no more than the first ones', () => {
    const some = faultsOf(wrong('body.name.1', 'body.name.2', 'body.name.2'), LABELS, { word })
    expect(some).toEqual({ name: 'Line 1 is wrong. Line 2 is wrong.' })
    const many = faultsOf(wrong(...Array.from({ length: 10_000 }, (_, index) => `body.name.${index}`)), LABELS, {
      word,
    })
    expect(many.name!.length).toBeGreaterThan(200)
    expect(many.name!.length).toBeLessThan(240)
  })

  it('without a field are rethrown, unless they are a conflict of the whole form', () => {
    const conflict = new AppError('conflict', 'there are as many as there can be')
    expect(() => faultsOf(conflict, LABELS)).toThrow(conflict)
    expect(faultsOf(conflict, LABELS, { rest: '' })).toEqual({ '': 'There are as many as there can be.' })
    for (const error of [wrong('body.other'), new AppError('not_found', 'no'), new TypeError('ours')])
      expect(() => faultsOf(error, LABELS, { rest: '' })).toThrow(error)
  })
})
