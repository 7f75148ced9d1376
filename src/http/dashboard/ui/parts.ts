/** What pages are made of: tables, facts, crumbs, pagers, choices, confirmations, buttons that copy. */

import { toOneLine } from '../../../domain/plain-text.ts'
import { type Html, html, isolated, type Part } from '../html.ts'
import { icon } from '../icons.ts'
import type { Page, Request } from '../page.ts'

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

/** A part of a page below a title, which has the id. */
export function section(id: string, title: Part, ...content: readonly Part[]): Html {
  return html`<section aria-labelledby="${id}">
<h2 id="${id}">${title}</h2>
${content}
</section>`
}

/** Null: not known, and left out. `wide`: over the whole width. */
export type Fact = readonly [name: string, value: Part, wide?: 'wide']

export function facts(list: readonly Fact[]): Html {
  const known = list.filter(([, value]) => value !== null)
  return html`<dl class="facts">
${known.map(([name, value, wide]) => html`<div${wide === undefined ? '' : html` class="wide"`}><dt>${name}</dt><dd>${value}</dd></div>\n`)}</dl>`
}

/** An address and its words. */
export type Crumb = readonly [to: string, words: Part]

/** `here`: what the page itself is, if its title does not say so. */
export function crumbs(above: readonly Crumb[], here?: Part): Html {
  return html`<nav class="crumbs" aria-label="Where you are">
${above.map(([to, words], index) => html`${index === 0 ? '' : ' / '}<a href="${to}">${words}</a>`)}
${here === undefined ? '' : html`/ <span aria-current="page">${here}</span>`}
</nav>`
}

/** Of an address; what is not given is left out. */
export type Query = Readonly<Record<string, string | null | undefined>>

/** The words for a list whose first page has the newest. */
export const BY_TIME = ['Newest', 'Older'] as const

/**
 * `query`: of this page; the first page has no cursor. `next`: null on the last page. `note` stands before the links.
 */
export function pager(
  path: string,
  { cursor: after, ...query }: Query,
  next: string | null,
  words: readonly [first: string, next: string] = ['First page', 'Next page'],
  note?: Part,
): Html {
  if (!after && next === null) return html``
  return html`<nav class="pager" aria-label="Pages">
${note === undefined ? '' : html`<span class="muted">${note}</span>`}
${after ? html`<a href="${addressOf(path, query)}">${words[0]}</a>` : ''}
${next === null ? '' : html`<a href="${addressOf(path, { ...query, cursor: next })}" rel="next">${words[1]}</a>`}
</nav>`
}

export function addressOf(path: string, query: Query): string {
  const given = Object.entries(query).filter((pair): pair is [string, string] => typeof pair[1] === 'string')
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given)}`
}

/** A value and its words. */
export type Choice = readonly [value: string, words: string]

/** `attributes`: with its name. */
export function select(attributes: Html, choices: readonly Choice[], chosen: string | undefined): Html {
  return html`<select ${attributes}>
${choices.map(([value, words]) => html`<option value="${value}"${value === chosen ? html` selected` : ''}>${toOneLine(words)}</option>\n`)}</select>`
}

export interface Question {
  /** `Delete`, or `Remove this user`: without a question mark. */
  readonly ask: string
  /** The name of the check or the channel. */
  readonly name?: string
  /** What is lost, and what stays. */
  readonly loss: Html
  /** Null: the act is done elsewhere, and `loss` says how. */
  readonly button: string | null
  /** False: the act takes nothing away. */
  readonly isDanger?: boolean
  /** The page that a user sees who cancels. */
  readonly back: string
  /** Hidden fields of the form. */
  readonly fields?: Html | string
}

/** The form posts to the path of the page. */
export function confirm({ path }: Pick<Request, 'path'>, question: Question): Page {
  const { ask, name, loss, button, isDanger = true, back, fields = '' } = question
  const cancel = html`<a class="button secondary outline" href="${back}">Cancel</a>`
  const form = (button: string) => html`<form method="post" action="${path.split('?')[0]}">
${fields}<button type="submit"${isDanger ? html` class="danger"` : ''}>${button}</button>
</form>`
  const main = html`<article class="confirm">
<h1>${ask}${name === undefined ? '' : html` ${isolated(name)}`}?</h1>
${loss}
<div class="buttons">${button === null ? '' : form(button)} ${cancel}</div>
</article>`
  return { kind: 'page', title: `${ask}${name === undefined ? '' : ` ${toOneLine(name)}`}?`, main }
}

/** Copies the text of the element with the id `target`, by the script. `of`: what is copied, for screen readers. */
export function copyButton(target: string, of: string): Html {
  return html`<button type="button" class="secondary outline small script-only" data-copy="${target}">${icon('copy')} Copy<span class="visually-hidden"> ${of}</span></button>`
}
