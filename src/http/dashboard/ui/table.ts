/** A table of things of one kind. */

import { type Html, html, type Part } from '../html.ts'

export interface Column<Row> {
  /** Also stands before the cell where a row is a card. */
  readonly heading: string
  /** `name`: the cell names its row. `actions`: the heading is for screen readers alone. */
  readonly kind?: 'name' | 'actions'
  readonly cell: (row: Row) => Part
}

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
<thead><tr>${shown.map(heading)}</tr></thead>
<tbody>
${rows.map(
  (row) => html`<tr${id === undefined ? '' : html` id="${id(row)}"`}>
${shown.map((column) => cell(column, row))}</tr>
`,
)}</tbody>
</table>`
}

function heading({ heading, kind }: Column<never>): Html {
  return html`<th scope="col">${kind === 'actions' ? html`<span class="visually-hidden">${heading}</span>` : heading}</th>`
}

function cell<Row>({ heading, kind, cell }: Column<Row>, row: Row): Html {
  if (kind === 'name') return html`<th scope="row">${cell(row)}</th>\n`
  if (kind === 'actions') return html`<td class="row-actions">${cell(row)}</td>\n`
  return html`<td data-label="${heading}">${cell(row)}</td>\n`
}
