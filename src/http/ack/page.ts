/** The page of an incident for a phone: what, since when, why, who has it. No output, and nothing else of the check. */

import { createHash } from 'node:crypto'
import type { Acknowledged, OpenIncident } from '../../checks/acknowledge-by-link.ts'
import type { Instant } from '../../domain/check.ts'
import type { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { toOneLine } from '../../domain/plain-text.ts'
import { type Html, html, isolated, trusted } from '../dashboard/html.ts'
import { acknowledgedSentence, statusSentence } from '../dashboard/words/status-words.ts'
import { clockOf } from '../dashboard/words/time-words.ts'
import { sentence } from '../dashboard/words/words.ts'

/** The buttons. `value`: of the field `for_seconds`; the empty one is the choice without a form, too. */
export const CHOICES = [
  { words: 'I have it', value: '', seconds: undefined },
  { words: 'Quiet for 2 hours', value: '7200', seconds: 7_200 },
  { words: 'Quiet for 1 day', value: '86400', seconds: 86_400 },
] as const

const STYLE = `
:root { color-scheme: light dark; --ground: #fff; --text: #1f2328; --main: #0a5fb4; --line: #6e7781 }
@media (prefers-color-scheme: dark) { :root { --ground: #14181f; --text: #dfe3e8; --main: #79b8ff; --line: #8b949e } }
body { margin: 0; font: 1.0625rem/1.5 system-ui, sans-serif; background: var(--ground); color: var(--text) }
main { max-width: 30rem; margin: 0 auto; padding: 1.25rem; overflow-wrap: anywhere }
h1 { margin: 0 0 0.75rem; font-size: 1.5rem; line-height: 1.25 }
label { display: block; margin: 1.25rem 0 0.25rem }
input, button { box-sizing: border-box; width: 100%; min-height: 3.25rem; padding: 0.5rem 0.75rem; border: 1px solid var(--line); border-radius: 0.5rem; background: transparent; color: inherit; font: inherit }
button { margin-top: 0.75rem; border: 2px solid var(--main); color: var(--main); font-weight: 600; cursor: pointer }
button:first-of-type { background: var(--main); color: var(--ground) }
:focus-visible { outline: 3px solid var(--line); outline-offset: 2px }
`
/** For the content security policy, which allows no other style. */
export const STYLE_HASH = `sha256-${createHash('sha256').update(STYLE).digest('base64')}`

function renderPage(title: string, main: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<style>${trusted(STYLE)}</style>
</head>
<body>
<main>
${main}
</main>
</body>
</html>
`.toString()
}

/** As it is, or as a press of a button has left it. */
export function renderIncident({ check, acknowledged, ...rest }: OpenIncident | Acknowledged, now: Instant): string {
  const { name, state, managedBy, spec } = check
  // In the zone of the messages: that of the schedule is a detail of the check.
  const clock = clockOf('UTC', now)
  const followed = spec.jobArea === null ? null : { detail: null, stuck: null }
  const why = statusSentence({ state, exitCode: null, isManaged: managedBy === 'kubernetes', followed, now, clock })
  const done = 'isNew' in rest && (rest.isNew ? 'Thank you.' : 'Nothing has changed: it was acknowledged before.')
  return renderPage(
    `${toOneLine(name)} is down`,
    html`<h1>${isolated(toOneLine(name))} is down</h1>
<p>${why}.</p>
${done ? html`<p role="status"><strong>${done}</strong></p>` : ''}
${acknowledged === null ? renderForm() : html`<p>${acknowledgedSentence(acknowledged, { now, clock })} Nothing more is sent of this meanwhile.</p>`}`,
  )
}

/** It posts to the address of the page, whatever a proxy has before it. */
function renderForm(): Html {
  return html`<form method="post">
<label for="name">Your name, for the others (optional)</label>
<input id="name" name="name" maxlength="${LIMITS.nameLength}" autocomplete="name">
${CHOICES.map(({ words, value }) => html`<button type="submit" name="for_seconds" value="${value}">${words}</button>\n`)}
</form>
<p>Nothing more is sent of this until it is up again, or for the time that you choose.</p>`
}

const message = (title: string, text: string) => renderPage(title, html`<h1>${title}</h1>\n<p>${text}</p>`)

export const renderEnded = () =>
  message(
    'This is over',
    'What the message was about has ended: the check is up again, was paused, or was removed. There is nothing to do.',
  )

export const renderForged = () =>
  message(
    'This link is not valid',
    'It may have been cut off: open it from the message again, or copy all of it. A check can also be acknowledged on its page in the dashboard.',
  )

export const renderFailure = ({ message: why }: AppError) => message('This did not work', sentence(why))
