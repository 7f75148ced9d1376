import { describe, expect, it } from 'vitest'
import { decide } from '../../../../src/operator/opt-in/decide.ts'

const label = (value: string) => ({ 'heartbeat-operator.io/watch': value })
const UNKNOWN = undefined

describe('labelled', () => {
  it.each([
    ['true', null],
    ['true', 'false'],
    ['true', 'true'],
    ['true', UNKNOWN],
  ])('a CronJob labelled %s is watched, whatever its Namespace says (%s)', (own, namespace) => {
    expect(decide('labelled', label(own), namespace)).toEqual({ isWatched: true, because: 'label of the CronJob' })
  })

  it.each([null, 'true', UNKNOWN])('a CronJob labelled false is not, whatever its Namespace says (%s)', (namespace) => {
    expect(decide('labelled', label('false'), namespace)).toEqual({ isWatched: false, because: 'label of the CronJob' })
  })

  it('the label of the Namespace is for all CronJobs in it', () => {
    expect(decide('labelled', undefined, 'true')).toEqual({ isWatched: true, because: 'label of the Namespace' })
    expect(decide('labelled', {}, 'false')).toEqual({ isWatched: false, because: 'no label' })
    expect(decide('labelled', {}, null)).toEqual({ isWatched: false, because: 'no label' })
  })

  it.each(['yes', 'True', '', '1'])('another value (%s) counts as no label', (value) => {
    expect(decide('labelled', label(value), 'true').isWatched).toBe(true)
    expect(decide('labelled', label(value), null).isWatched).toBe(false)
    expect(decide('labelled', undefined, value).isWatched).toBe(false)
  })

  it('nothing is decided for a Namespace that is not known', () => {
    expect(decide('labelled', undefined, UNKNOWN)).toEqual({ isWatched: null, because: 'Namespace unknown' })
  })
})

describe('all', () => {
  it.each([undefined, {}, label('true'), label('yes')])('watches a CronJob with the labels %o', (labels) => {
    expect(decide('all', labels, UNKNOWN).isWatched).toBe(true)
    expect(decide('all', labels, 'false').isWatched).toBe(true)
  })

  it('excludes one that is labelled false', () => {
    expect(decide('all', label('false'), 'true')).toEqual({ isWatched: false, because: 'label of the CronJob' })
  })
})
