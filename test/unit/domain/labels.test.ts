import { describe, expect, it } from 'vitest'
import {
  findSeriesLabelsFault,
  isLabelName,
  isLabelValue,
  limitLabels,
  sortLabels,
  toSeriesLabel,
} from '../../../src/domain/labels.ts'

const manyNames = (count: number) => Array.from({ length: count }, (_, index) => `name-${100 + index}`)

describe('the name of a label', () => {
  it.each([
    'a',
    '9',
    'A_b.C-9',
    'n'.repeat(63),
    'example.com/team',
    'a/b',
    '0-a.b-9/X',
    `${'p'.repeat(253)}/${'n'.repeat(63)}`,
    'constructor',
  ])('can be %s', (name) => expect(isLabelName(name)).toBe(true))

  it.each([
    '',
    'n'.repeat(64),
    `${'p'.repeat(254)}/n`,
    '/team',
    'example.com/',
    'a/b/c',
    'Example.com/team',
    'example..com/team',
    '-example.com/team',
    'example.com-/team',
    'exa_mple.com/team',
    '-a',
    'a-',
    '.a',
    'a_',
    'a b',
    'a\n',
    'é',
    '__proto__',
    'a'.repeat(100_000),
    `${'a.'.repeat(50_000)}/`,
  ])('cannot be %s', (name) => expect(isLabelName(name)).toBe(false))
})

describe('the value of a label', () => {
  it.each(['', 'a', '9', 'A_b.C-9', 'v'.repeat(63)])('can be "%s"', (value) => expect(isLabelValue(value)).toBe(true))
  it.each(['v'.repeat(64), '-a', 'a-', '_', 'a/b', 'a b', 'a\n', 'é', 1, null, true, {}])('cannot be %j', (value) =>
    expect(isLabelValue(value)).toBe(false),
  )
})

it('labels are limited to the first 32 by name', () => {
  const names = manyNames(34)
  const all = Object.fromEntries(names.toReversed().map((name) => [name, 'x']))
  expect(limitLabels(all)).toEqual({
    labels: Object.fromEntries(names.slice(0, 32).map((name) => [name, 'x'])),
    dropped: names.slice(32),
  })
  const some = Object.fromEntries(names.slice(0, 32).map((name) => [name, 'x']))
  expect(limitLabels(some)).toEqual({ labels: some, dropped: [] })
})

it('labels are sorted by name', () => {
  expect(Object.entries(sortLabels({ b: '1', 'a.b/c': '2', Z: '3', ab: '4' }))).toEqual([
    ['Z', '3'],
    ['a.b/c', '2'],
    ['ab', '4'],
    ['b', '1'],
  ])
})

it('a label of a series has a prefix, and _ for what Prometheus does not take', () => {
  expect(['team', 'app.kubernetes.io/part-of', '2nd'].map(toSeriesLabel)).toEqual([
    'label_team',
    'label_app_kubernetes_io_part_of',
    'label_2nd',
  ])
})

describe('the names of labels of series', () => {
  it.each([[[]], [['team', 'app.kubernetes.io/part-of']], [manyNames(10)], [['namespace', 'label_team', 'team']]])(
    'can be %j',
    (names) => expect(findSeriesLabelsFault(names)).toBeNull(),
  )

  it.each([
    [manyNames(11), 'must have at most 10 entries, and has 11'],
    [['team', 'a b'], 'entry 2 is not valid'],
    [['a.b', 'team', 'a-b'], 'must not have both a.b and a-b: each would be the label label_a_b of a series'],
  ])('cannot be %j', (names, fault) => expect(findSeriesLabelsFault(names)).toContain(fault))
})
