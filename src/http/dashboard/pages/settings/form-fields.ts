/** Fields of forms: a label, an input, and beside it what is wrong with its value. */

import { includesScope, type Scope } from '../../../../domain/access.ts'
import type { Instant } from '../../../../domain/check.ts'
import { AppError } from '../../../../domain/errors.ts'
import { isUuid } from '../../../../domain/ids.ts'
import { toOneLine } from '../../../../domain/plain-text.ts'
import { newId } from '../../../../runtime/ids.ts'
import { type Html, html } from '../../html.ts'
import { sentence } from '../../words/words.ts'

/** The words beside each field, by its name in the body of the API. */
export type Labels = Readonly<Record<string, string>>
/** A sentence for each field at fault. */
export type Faults = Readonly<Record<string, string>>

/** What was posted, and why it was rejected. */
export interface Rejected {
  readonly values: URLSearchParams
  readonly faults: Faults
}

/** Null for an error that is about no field of the form. */
export function findFaults(error: unknown, labels: Labels): Faults | null {
  if (!(error instanceof AppError) || !['invalid', 'conflict'].includes(error.code)) return null
  const found: Record<string, string> = {}
  const add = (name: string, message: string) => {
    if (Object.hasOwn(labels, name)) found[name] ??= sentence(`${labels[name]} ${message}`)
  }
  for (const { path, message } of error.details ?? []) add(path.slice('body.'.length), message)
  const { field, message } = error
  if (field !== undefined) {
    const name = field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
    // A rule follows the name of its field; the text of a conflict stands alone.
    if (error.code === 'invalid') add(name, message)
    else if (Object.hasOwn(labels, name)) found[name] = sentence(message)
  }
  return Object.keys(found).length === 0 ? null : found
}

/**
 * The button of a form that filters a list. Scope `read` sees no button: there the script submits the form when a choice changes. Without scripts
 * the button shows; where it does not, it still makes the key Enter submit the form.
 */
export function filterButton(scope: Scope): Html {
  const kind = includesScope(scope, 'write') ? 'secondary' : 'secondary scriptless-only'
  return html`<input type="submit" class="${kind}" value="Show">`
}

/** The attribute of such a form. */
export function filterAttribute(scope: Scope): Html | string {
  return includesScope(scope, 'write') ? '' : html` data-submit`
}

export interface Field {
  /** Its form, which makes the ids unique in the page. */
  readonly form: string
  readonly name: string
  readonly label: string
  readonly value?: string | undefined
  readonly fault?: string | undefined
  readonly hint?: string | undefined
  readonly isRequired?: boolean
}

export interface Input extends Field {
  readonly type?: 'text' | 'email' | 'password' | 'date'
  readonly autocomplete?: string
}

export function inputField(field: Input): Html {
  const { name, type = 'text', value = '', autocomplete = 'off', isRequired = true } = field
  return around(
    field,
    html`<input id="${idOf(field)}" type="${type}" name="${name}" value="${type === 'password' ? '' : value}" autocomplete="${autocomplete}"${isRequired ? html` required` : ''}${stateOf(field)}>`,
  )
}

/** `choices`: a value and its words. */
export function selectField(field: Field & { readonly choices: readonly (readonly [string, string])[] }): Html {
  const { name, value, choices } = field
  return around(
    field,
    html`<select id="${idOf(field)}" name="${name}"${stateOf(field)}>
${choices.map(([one, words]) => html`<option value="${one}"${one === value ? html` selected` : ''}>${toOneLine(words)}</option>`)}
</select>`,
  )
}

function around(field: Field, control: Html): Html {
  const { label, fault, hint } = field
  return html`<div class="field">
<label for="${idOf(field)}">${label}</label>
${control}
${fault === undefined ? '' : html`<small id="${idOf(field)}-fault" class="fault">${fault}</small>`}
${hint === undefined ? '' : html`<small id="${idOf(field)}-hint" class="muted">${hint}</small>`}
</div>`
}

function stateOf(field: Field): Html {
  const { fault, hint } = field
  const described = [fault === undefined ? '' : `${idOf(field)}-fault`, hint === undefined ? '' : `${idOf(field)}-hint`]
  const by = described.join(' ').trim()
  return html`${fault === undefined ? '' : html` aria-invalid="true"`}${by === '' ? '' : html` aria-describedby="${by}"`}`
}

function idOf({ form, name }: Field): string {
  return `${form}-${name.replaceAll('_', '-')}`
}

/**
 * For a form whose response shows a secret once: the id of what it creates. A browser that loads the response again posts the form again, and is
 * rejected because the id exists.
 */
export function newIdField(now: Instant): Html {
  return html`<input type="hidden" name="new_id" value="${newId(now)}">`
}

export function readNewId(form: URLSearchParams): { readonly id?: string } {
  const id = form.get('new_id') ?? ''
  return isUuid(id) ? { id } : {}
}
