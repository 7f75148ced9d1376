/** A page that asks before something is lost. */

import { toOneLine } from '../../../domain/plain-text.ts'
import { type Html, html } from '../html.ts'
import type { Page, Request } from '../page.ts'
import { isolated } from '../words/words.ts'

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
