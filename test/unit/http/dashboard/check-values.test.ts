import { describe, expect, it } from 'vitest'
import { newValues, toBody } from '../../../../src/http/dashboard/pages/checks/check-values.ts'
import { changedFields, digestValues, WAS } from '../../../../src/http/dashboard/ui/form.ts'
import { startCpuTimer } from '../../../support/cpu-time.ts'

describe('the labels of a form', () => {
  const read = (labels: string) => {
    const { body, faults } = toBody({ ...newValues('p'), name: 'A', labels }, null)
    return { labels: body.labels as Record<string, string>, fault: faults.labels }
  }
  const many = (count: number, last = '') =>
    Array.from({ length: count }, (_, index) => `n${index}=v`).join('\n') + last

  it('are read up to the first one that is too many', () => {
    expect(Object.keys(read(many(32)).labels)).toHaveLength(32)
    expect(Object.keys(read(many(33)).labels)).toHaveLength(33)
    expect(Object.keys(read(many(5_000)).labels)).toHaveLength(33)
  })

  it('name the first that is there twice', () => {
    expect(read('a=1\nb=2,b=3\na=4')).toMatchObject({ fault: 'Labels must not have b twice.' })
    expect(read(many(31, '\nn0=x')).fault).toBe('Labels must not have n0 twice.')
    expect(read('__proto__=x').labels).toEqual(Object.fromEntries([['__proto__', 'x']]))
  })

  it('cost in proportion to their length', () => {
    const text = Array.from({ length: 16_333 }, (_, index) => index.toString(36)).join(',')
    const usedMs = startCpuTimer()
    read(text)
    expect(usedMs()).toBeLessThan(60)
  })
})

describe('what a user changed', () => {
  const shown = { name: 'A', text: 'one\rtwo\r\n' }
  const changed = (typed: Record<string, string>, was: string | null = digestValues(shown), boxes: 'text'[] = []) => {
    const form = new URLSearchParams({ ...typed, ...(was === null ? {} : { [WAS]: was }) })
    const values = { name: form.get('name') ?? '', text: form.get('text') ?? '' }
    return [...changedFields(form, values, boxes)]
  }

  it('differs in more than line breaks', () => {
    expect(changed(shown)).toEqual([])
    expect(changed({ ...shown, text: 'one\ntwo\n' })).toEqual([])
    expect(changed({ ...shown, text: 'one\n\ntwo\n' })).toEqual(['text'])
    expect(changed({ name: 'B' })).toEqual(['name'])
  })

  it('is all of a form that is none of ours, and a field without a checked box', () => {
    for (const was of [null, '', 'x', `${digestValues(shown)}.more`])
      expect(changed(shown, was)).toEqual(['name', 'text'])
    expect(changed({ name: 'A' }, digestValues(shown), ['text'])).toEqual(['text'])
  })
})
