/** Forms: a field is a label, a control, what is wrong with its value, and what it means. */

import { createHash } from 'node:crypto'
import { includesScope, type Scope } from '../../../domain/access.ts'
import type { Instant } from '../../../domain/check.ts'
import { AppError, describeError, isConflict } from '../../../domain/errors.ts'
import { toSnakeCase } from '../../../domain/field-names.ts'
import { isUuid } from '../../../domain/ids.ts'
import { toOneLine } from '../../../domain/plain-text.ts'
import { newId } from '../../../runtime/ids.ts'
import { type Html, html, type Part } from '../html.ts'
import { sentence } from '../words/words.ts'
import { type Choice, select } from './parts.ts'

/** The words beside each field, by its name in the body of the API. */
export type Labels = Readonly<Record<string, string>>
/** A sentence for each field at fault. */
export type Faults = Readonly<Record<string, string>>

/** What was posted, and why it was rejected. */
export interface Rejected {
  readonly values: URLSearchParams
  readonly faults: Faults
}

export interface FormState {
  readonly labels: Labels
  /** Makes the ids of its fields unique on a page with several forms. */
  readonly id?: string
  readonly values?: Readonly<Record<string, string>>
  readonly faults?: Faults
  readonly isReadOnly?: boolean | undefined
  /** The field in which a user begins to type. */
  readonly focus?: string | undefined
}

/** A form that shows `values`, or as it was rejected. */
export function stateOf(id: string, labels: Labels, rejected?: Rejected, values: FormState['values'] = {}): FormState {
  return {
    id,
    labels,
    values: { ...values, ...Object.fromEntries(rejected?.values ?? []) },
    faults: rejected?.faults ?? {},
  }
}

/** `attributes`: what names and describes the control. */
export type Control = (attributes: Html, value: string) => Html

export function field(form: FormState, name: string, control: Control, meaning?: string): Html {
  const id = form.id === undefined ? name : `${form.id}-${name.replaceAll('_', '-')}`
  const fault = form.faults?.[name]
  const attributes = html`id="${id}" name="${name}"${describedBy(id, fault, meaning)}${
    fault === undefined ? '' : html` aria-invalid="true"`
  }${form.isReadOnly === true ? html` readonly` : ''}${form.focus === name ? html` autofocus` : ''}`
  return html`<div class="field">
<label for="${id}">${form.labels[name]}</label>
${control(attributes, form.values?.[name] ?? '')}
${below(id, fault, meaning)}
</div>`
}

function describedBy(id: string, fault: string | undefined, meaning: string | undefined): Html | string {
  const ids = [...(fault === undefined ? [] : [`${id}-fault`]), ...(meaning === undefined ? [] : [`${id}-meaning`])]
  return ids.length === 0 ? '' : html` aria-describedby="${ids.join(' ')}"`
}

function below(id: string, fault: string | undefined, meaning: string | undefined): Html {
  return html`${fault === undefined ? '' : html`<small id="${id}-fault" class="fault">${fault}</small>`}
${meaning === undefined ? '' : html`<small id="${id}-meaning">${meaning}</small>`}`
}

/** A line. `more`: attributes. */
export function text(
  more: Part = '',
  autocomplete = 'off',
  type: 'text' | 'email' | 'date' | 'datetime-local' = 'text',
): Control {
  return (attributes, value) =>
    html`<input type="${type}" ${attributes} value="${value}" autocomplete="${autocomplete}"${more}>`
}

/** What was typed is never sent back. */
export function password(autocomplete: 'current-password' | 'new-password', more: Part = ''): Control {
  return (attributes) => html`<input type="password" ${attributes} autocomplete="${autocomplete}"${more}>`
}

export const required = html` required`

/** Browsers drop a line break at the beginning: the first one is ours. */
export function area(rows: number, more: Part = ''): Control {
  return (attributes, value) => html`<textarea ${attributes} rows="${rows}"${more}>
${value}</textarea>`
}

export function choice(choices: readonly Choice[]): Control {
  return (attributes, value) => select(attributes, choices, value)
}

/** A value, its words, and what is said beside them. */
export type Box = readonly [...Choice, note?: string | null]

/** Several of several values. */
export function boxes(
  form: FormState,
  name: string,
  choices: readonly Box[],
  chosen: readonly string[],
  meaning?: string,
): Html {
  const fault = form.faults?.[name]
  return html`<fieldset id="${name}" class="field"${describedBy(name, fault, meaning)}>
<legend>${form.labels[name]}</legend>
${choices.map(
  ([value, words, note]) =>
    html`<label><input type="checkbox" name="${name}" value="${value}"${chosen.includes(value) ? html` checked` : ''}> ${toOneLine(words)}${note ? html` <small class="muted">${note}</small>` : ''}</label>\n`,
)}${below(name, fault, meaning)}
</fieldset>`
}

/** The input at which a fault is shown, and its text. Null: in the usual words, at the input of its field. */
export type WordedFault = readonly [input: string, text: string] | null

interface FaultOptions {
  readonly word?: (name: string, inside: readonly string[], message: string) => WordedFault
  /** The input for a conflict that names no field. */
  readonly rest?: string
}

/** Of the faults of one field: a list can have thousands, and the first ones say what to do. */
const MOST_CHARACTERS = 200

/** The faults of an error of a schema or a verb. Rethrows an error that is about no field of the form. */
export function faultsOf(error: unknown, labels: Labels, { word, rest }: FaultOptions = {}): Faults {
  if (!(error instanceof AppError) || (error.code !== 'invalid_request' && !isConflict(error.code))) throw error
  const faults: Record<string, string> = {}
  const add = (input: string, message: string) => {
    const text = sentence(message)
    const before = faults[input]
    if (before === undefined) faults[input] = text
    else if (before.length < MOST_CHARACTERS && !before.includes(text)) faults[input] = `${before} ${text}`
  }
  const { code, field, details = [] } = error
  const { rule } = describeError(error, (name) => labels[toSnakeCase(name)] ?? name)
  for (const { path, message } of [
    ...(field === undefined ? [] : [{ path: `body.${field}`, message: rule }]),
    ...details,
  ]) {
    const [, name = '', ...inside] = path.split('.')
    const input = toSnakeCase(name)
    const worded = word?.(name, inside, message)
    if (worded) add(...worded)
    // A rule follows the name of its field; the text of a conflict stands alone.
    else if (Object.hasOwn(labels, input)) add(input, isConflict(code) ? message : `${labels[input]} ${message}`)
  }
  if (isConflict(code) && rest !== undefined && Object.keys(faults).length === 0) add(rest, error.message)
  if (Object.keys(faults).length === 0) throw error
  return faults
}

/** Fields of a form; a field that was not sent is empty. */
export function typed(form: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, form.get(name) ?? '']))
}

/** Fields of a form, or parameters of a query, without those that are empty. */
export function filled(form: URLSearchParams, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(typed(form, names)).filter(([, value]) => value !== ''))
}

/** The name of what is wrong with the form as a whole. */
export const WHOLE = ''

export function generalFault(faults: Faults = {}): Html | string {
  const text = faults[WHOLE]
  return text === undefined ? '' : html`<p class="fault" role="alert">${text}</p>`
}

/**
 * The button of a form that filters a list. Scope `read` sees no button: its script submits the form when a choice
 * changes. A button that does not show still lets the key Enter submit the form.
 */
export function filterButton(scope: Scope): Html {
  const kind = includesScope(scope, 'write') ? 'secondary' : 'secondary scriptless-only'
  return html`<input type="submit" class="${kind}" value="Show">`
}

/** The attribute of such a form. */
export function filterAttribute(scope: Scope): Html | string {
  return includesScope(scope, 'write') ? '' : html` data-submit`
}

/**
 * For a form whose response shows a secret once: the id of what the form creates. A browser that loads the response
 * again posts the form again, and is rejected because the id exists.
 */
export function newIdField(now: Instant): Html {
  return html`<input type="hidden" name="new_id" value="${newId(now)}">`
}

export function readNewId(form: URLSearchParams): { readonly id?: string } {
  const id = form.get('new_id') ?? ''
  return isUuid(id) ? { id } : {}
}

// What a user changed. A form comes back with a digest of each value that it showed, so that only the other values are
// sent on: what another user changed meanwhile stays.
// ---------------------------------------------------------------------------------------------------------------------

/** The name of the field with the digests. */
export const WAS = 'was'

/** The values of a form, always in the same order. */
type Values<Name extends string> = Readonly<Record<Name, string>>

/** Browsers send the line breaks of a text as CRLF, whatever they were. */
export const toLines = (text: string): string => text.replace(/\r\n?/g, '\n')

export function digestValues(values: Values<string>): string {
  return Object.values(values).map(digest).join('.')
}

function digest(value: string): string {
  return createHash('sha256').update(toLines(value)).digest('base64url').slice(0, 12)
}

/** `was`: of a form that came back, whose digests stay. */
export function wasField(values: Values<string>, was?: string | null): Html {
  return html`<input type="hidden" name="${WAS}" value="${was ?? digestValues(values)}">`
}

/**
 * The fields of a form that differ from what the form showed. All of its fields where the digest is of no form of ours.
 * `boxes`: fields of which a browser sends nothing when no box is checked.
 */
export function changedFields<Name extends string>(
  form: URLSearchParams,
  values: Values<Name>,
  boxes: readonly Name[] = [],
): ReadonlySet<Name> {
  const names = Object.keys(values) as Name[]
  const before = form.get(WAS)?.split('.') ?? []
  const isChanged = (name: Name, index: number) =>
    (form.has(name) || boxes.includes(name)) &&
    (before.length !== names.length || digest(values[name]) !== before[index])
  return new Set(names.filter(isChanged))
}

/** The body of a change: the fields of `names`, which are all that the form showed, that its user changed. */
export function changes(form: URLSearchParams, names: readonly string[]): Record<string, string> {
  const values = typed(form, names)
  const changed = changedFields(form, values)
  return Object.fromEntries(Object.entries(values).filter(([name]) => changed.has(name)))
}
