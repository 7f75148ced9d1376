import { expect, it } from 'vitest'
import { describeRows, progressLine } from '../../../src/import/report.ts'

it('lists everything, and counts it', () => {
  const rows = [
    { name: 'A', outcome: 'made', reason: '' },
    { name: 'Backup\u001b[31m\n', outcome: 'made', reason: 'tags are left out: ü' },
    { name: 'x'.repeat(60), outcome: 'refused', reason: 'has no uuid' },
    { name: 'B', outcome: 'there already', reason: '' },
    { name: 'Web', outcome: 'left out', reason: 'is of type http' },
  ] as const
  expect(describeRows(rows, { isDryRun: false })).toEqual([
    `${'A'.padEnd(40)}  made`,
    `${'Backup'.padEnd(40)}  made           tags are left out: ü`,
    `${'x'.repeat(39)}…  refused        has no uuid`,
    `${'B'.padEnd(40)}  there already`,
    `${'Web'.padEnd(40)}  left out       is of type http`,
    'made 2, there already 1, refused 1, left out 1',
  ])
})

it('says that a dry run has written nothing', () => {
  expect(describeRows([], { isDryRun: true })).toEqual([
    'made 0, there already 0, refused 0, left out 0',
    'nothing was written (--dry-run): made means would be made',
  ])
})

it('draws how far it is, and ends its line with the last one', () => {
  expect(progressLine(1, 2)).toBe(`\r[${'#'.repeat(15)}${' '.repeat(15)}] 1/2`)
  expect(progressLine(2, 2)).toBe(`\r[${'#'.repeat(30)}] 2/2\n`)
})
