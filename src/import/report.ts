/** What an import prints: its progress, and the table at its end. */

import { toOneLine } from '../domain/plain-text.ts'
import { OUTCOMES, type Row } from './import-items.ts'

const NAME_WIDTH = 40

/** The lines of the table: a row for each item, so that what became of one can be looked up, and how many there are of each outcome. */
export function describeRows(rows: readonly Row[], { isDryRun }: { readonly isDryRun: boolean }): string[] {
  const names = rows.map(({ name }) => shorten(toOneLine(name)))
  const width = Math.max(0, ...names.map((name) => Array.from(name).length))
  const lines = rows.map(({ outcome, reason }, place) => {
    const name = names[place]!
    const space = ' '.repeat(width - Array.from(name).length)
    return `${name}${space}  ${outcome.padEnd('there already'.length)}  ${toOneLine(reason)}`.trimEnd()
  })
  const counts = OUTCOMES.map((wanted) => `${wanted} ${rows.filter(({ outcome }) => outcome === wanted).length}`)
  const ending = isDryRun ? ['nothing was written (--dry-run): made means would be made'] : []
  return [...lines, counts.join(', '), ...ending]
}

function shorten(name: string): string {
  const points = Array.from(name)
  return points.length <= NAME_WIDTH ? name : `${points.slice(0, NAME_WIDTH - 1).join('')}…`
}

const BAR_WIDTH = 30

/** A line for a terminal that replaces itself. */
export function progressLine(done: number, total: number): string {
  const filled = total === 0 ? BAR_WIDTH : Math.floor((done / total) * BAR_WIDTH)
  const end = done === total ? '\n' : ''
  return `\r[${'#'.repeat(filled)}${' '.repeat(BAR_WIDTH - filled)}] ${done}/${total}${end}`
}
