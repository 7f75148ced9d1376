/** A table of things of one kind. */

import { type Html, html, type Part } from '../html.ts'

/**
 * Where a row is a card, the heading stands before the cell. `name`: the cell names its row. `actions`: the heading is
 * for screen readers alone.
 */
export type Column<Row> = readonly [heading: string, cell: (row: Row) => Part, kind?: 'name' | 'actions']

export interface TableOptions<Row> {
  /** Default: `cards`, whose rows are cards on a narrow screen (assets/base.css). */
  readonly look?: string
  readonly id?: (row: Row) => string
}

/** A column that is `false` is left out. */
export function table<Row>(
  columns: readonly (Column<Row> | false)[],
  rows: readonly Row[],
  { look = 'cards', id }: TableOptions<Row> = {},
): Html {
  const shown = columns.filter((column) => column !== false)
  return html`<table class="${look}">
<thead><tr>${shown.map(
    ([heading, , kind]) =>
      html`<th scope="col">${kind === 'actions' ? html`<span class="visually-hidden">${heading}</span>` : heading}</th>`,
  )}</tr></thead>
<tbody>
${rows.map(
  (row) => html`<tr${id === undefined ? '' : html` id="${id(row)}"`}>
${shown.map((column) => renderCell(column, row))}</tr>
`,
)}</tbody>
</table>`
}

function renderCell<Row>([heading, cell, kind]: Column<Row>, row: Row): Html {
  if (kind === 'name') return html`<th scope="row">${cell(row)}</th>\n`
  if (kind === 'actions') return html`<td class="row-actions">${cell(row)}</td>\n`
  return html`<td data-label="${heading}">${cell(row)}</td>\n`
}

/** `of`: what the row is about, for screen readers, which meet many links of the same words. */
export function rowLink(to: string, words: string, of: string): Html {
  return html`<a href="${to}">${words}<span class="visually-hidden"> ${of}</span></a>`
}
