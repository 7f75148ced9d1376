/** The table of docs/operate/sizing.md follows from its bytes and from the limits of the history. */

import { expect, it } from 'vitest'
import { VARIABLES } from '../../../src/config/variables.ts'
import { readText } from '../../support/documents.ts'

const text = readText('docs/operate/sizing.md')
const numberOf = (cell: string) => Number(cell.replaceAll(',', ''))
const bytesOf = (what: string) => numberOf(new RegExp(`^\\| ${what} \\| ([\\d,]+) \\|$`, 'm').exec(text)![1]!)
const SECONDS: Record<string, number> = { '1 hour': 3_600, '5 minutes': 300, '1 minute': 60 }
const MONTH_SECONDS = 30 * 86_400
/** With the two digits of the table. */
const isAbout = (wanted: number) => (shown: number) => Math.abs(shown - wanted) <= 0.05 * wanted + 0.005

const rows = [...text.matchAll(/^\| ([\d,]+) \| (\d \w+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$/gm)]

it.each(rows.map(([, ...cells]) => cells))('%s checks, every %s', (checks, every, rate, month, full) => {
  const count = numberOf(checks!)
  const perSecond = count / SECONDS[every!]!
  const kept = VARIABLES.historyMaxPings[1].parse(undefined)
  expect(numberOf(rate!)).toSatisfy(isAbout(perSecond))
  expect(numberOf(month!)).toSatisfy(isAbout((perSecond * MONTH_SECONDS * bytesOf('ping')) / 1e9))
  expect(numberOf(full!)).toSatisfy(isAbout((count * (bytesOf('check') + kept * bytesOf('ping'))) / 1e9))
})

it('has rows', () => expect(rows).toHaveLength(6))
