/** What the sections of the settings share: a part of `/settings` and a page of its own for a long list. */

import type { Instant } from '../../../../domain/check.ts'
import { AppError } from '../../../../domain/errors.ts'
import { decodeCursor, encodeCursor, type Page as ListPage, type PageRequest } from '../../../../domain/page.ts'
import { type Html, html, isolated } from '../../html.ts'
import type { Page, Request } from '../../page.ts'
import type { Rejected } from '../../ui/form.ts'
import { type Crumb, crumbs, pager } from '../../ui/parts.ts'
import { ago } from '../../words/time-words.ts'

export interface SectionView {
  readonly after: PageRequest['after']
  readonly limit: number
  /** The form of the section, as it was rejected. */
  readonly rejected?: Rejected
}

export interface Section {
  /** The id of the section in `/settings`, and the last part of the path of its own page. */
  readonly id: string
  readonly title: string
  /** In `/settings`. Default: 20. */
  readonly firstRows?: number
  render(request: Request, view: SectionView): Promise<Html>
}

/** In `/settings`; a section with more has a page of its own. */
const FIRST_ROWS = 20
const ROWS = 100

export async function showSection(request: Request, section: Section, rejected?: Rejected): Promise<Page> {
  const cursor = request.query.get('cursor')
  const after = cursor === null ? null : decodeCursor(cursor)
  if (cursor !== null && after === null)
    throw new AppError('invalid_request', 'this page of the list does not exist: begin at its first page')
  const main = html`${crumbs([SETTINGS], section.title)}
<h1>${section.title}</h1>
${await section.render(request, { after, limit: ROWS, ...(rejected && { rejected }) })}`
  return { kind: 'page', title: section.title, main, ...(rejected && { status: 422 }) }
}

/** A part of `/settings`. */
export async function renderSection(request: Request, section: Section): Promise<Html> {
  const { id, title, firstRows = FIRST_ROWS } = section
  return html`<section id="${id}" class="settings-section" aria-labelledby="${id}-title">
<h2 id="${id}-title">${title}</h2>
${await section.render(request, { after: null, limit: firstRows })}
</section>`
}

/** `filters`: the filters of the query. */
export function pagerOf(
  { id }: Pick<Section, 'id'>,
  { next }: Pick<ListPage<unknown>, 'next'>,
  { after }: Pick<SectionView, 'after'>,
  filters: Readonly<Record<string, string>> = {},
): Html {
  return pager(`/settings/${id}`, { ...filters, cursor: after && encodeCursor(after) }, next && encodeCursor(next))
}

/** When something was made, and by whom. */
export function createdWords(
  { createdAt, createdBy }: { readonly createdAt: Instant; readonly createdBy: { readonly name: string } | null },
  now: Instant,
): Html {
  return html`${ago(createdAt, now)}${createdBy === null ? '' : html` by ${isolated(createdBy.name)}`}`
}

/** A form below the list that it adds to. The form is open, so that its fields are one step away. */
export function addition(id: string, title: string, form: Html): Html {
  return html`<fieldset id="${id}" class="settings-new">
<legend><strong>${title}</strong></legend>
${form}
</fieldset>`
}

export const SETTINGS: Crumb = ['/settings', 'Settings']

export const SCOPE_CHOICES = [
  ['read', 'read: see everything, change nothing'],
  ['write', 'write: also create and change checks'],
  ['admin', 'admin: also keys, users, projects, channels'],
] as const
