/** The document around the content of every page, and what a page says after an action. */

import type { DashboardCaller } from '../../auth/sessions.ts'
import type { Instant } from '../../domain/check.ts'
import { toIso } from '../../domain/instant.ts'
import { toOneLine } from '../../domain/plain-text.ts'
import { onSite } from '../../domain/site.ts'
import type { Assets } from './assets.ts'
import { type Html, html } from './html.ts'
import { icon } from './icons.ts'
import type { Page } from './page.ts'

export interface Around {
  readonly caller: DashboardCaller | null
  /** The path of the request, without its query. */
  readonly path: string
  /** The value of `?done=`. */
  readonly done: string | null
  readonly assets: Assets
  /** What a proxy has before our own paths (domain/site.ts). */
  readonly sitePath: string
  readonly now: Instant
}

const SECTIONS = [
  ['/checks', 'Checks'],
  ['/channels', 'Channels'],
  ['/silences', 'Silences'],
  ['/deliveries', 'Deliveries'],
  ['/settings', 'Settings'],
  ['/service', 'Service'],
] as const

/** Whether nothing on the page depends on when or for whom it is made: a text that many get. */
export function isTimeless({ live = 'none' }: Page, { caller }: Pick<Around, 'caller'>): boolean {
  return caller === null && live === 'none'
}

/** The addresses of our own in a document. Templates escape the quotes of texts, so that no text looks like one. */
const OWN_ADDRESS = / (href|src|action|data-preview)="(\/[^"]*)/g

export function renderDocument(page: Page, { caller, path, done, assets, sitePath, now }: Around): string {
  // Anyone can make a link with `?done=`: without a session only the log-out can have happened.
  const mayShow = done !== null && Object.hasOwn(NOTICES, done) && (caller === null) === (done === 'logged-out')
  const notice = mayShow ? NOTICES[done] : undefined
  const { title, main, mood = 'none', live = 'none', nextLateAt = null, retryAfterSeconds, isError } = page
  const document = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${toOneLine(title)} - Heartbeat Operator</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
${isTimeless(page, { caller }) ? '' : html`<meta name="server-time" content="${toIso(now)}">`}
${retryAfterSeconds === undefined ? '' : html`<noscript><meta http-equiv="refresh" content="${retryAfterSeconds}"></noscript>`}
<link rel="icon" id="favicon" href="${FAVICONS[mood]}">
<link rel="stylesheet" href="${assets.styles}">
<script src="${assets.library}" defer></script>
<script type="module" src="${assets.script}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
${renderHeader(caller, path)}
<main id="main" class="container" data-live="${live}"${nextLateAt === null ? '' : html` data-next="${toIso(nextLateAt)}"`}${isError === true ? html` data-form="keep"` : ''}>
${notice === undefined ? '' : html`<p class="notice" role="status" id="notice">${notice}</p>`}
${main}
</main>
</body>
</html>
`
  const text = document.toString()
  if (sitePath === '') return text
  return text.replaceAll(OWN_ADDRESS, (_, name, address) => ` ${name}="${onSite(sitePath, address)}`)
}

function renderHeader(caller: DashboardCaller | null, path: string): Html {
  const brand = html`<a class="brand" href="/checks">${icon('heart')} Heartbeat</a>`
  if (caller === null) return html`<header class="top container">${brand}</header>`
  return html`<header class="top container">
${brand}
<nav aria-label="Sections"><ul>
${SECTIONS.map(([to, name]) => {
  const isCurrent = path === to || path.startsWith(`${to}/`)
  return html`<li><a href="${to}"${isCurrent ? html` aria-current="page"` : ''}>${name}</a></li>`
})}
</ul></nav>
<form class="log-out" method="post" action="/logout">
<span class="who" title="${caller.name}">${caller.name}</span>
<button class="secondary outline" type="submit">Log out</button>
</form>
</header>`
}

const HEART =
  'm8 14.25.345.666a.75.75 0 0 1-.69 0l-.008-.004-.018-.01a7.152 7.152 0 0 1-.31-.17 22.055 22.055 0 0 1-3.434-2.414C2.045 10.731 0 8.35 0 5.5 0 2.836 2.086 1 4.25 1 5.797 1 7.153 1.802 8 3.02 8.847 1.802 10.203 1 11.75 1 13.914 1 16 2.836 16 5.5c0 2.85-2.045 5.231-3.885 6.818a22.066 22.066 0 0 1-3.744 2.584l-.018.01-.006.003h-.002Z'

const favicon = (colour: string) =>
  `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="${colour}" d="${HEART}"/></svg>`)}`

/** The heart in the colour of what is wrong. */
const FAVICONS: Readonly<Record<NonNullable<Page['mood']>, string>> = {
  down: favicon('#cf222e'),
  late: favicon('#d29922'),
  calm: favicon('#1a7f37'),
  none: favicon('#0172ad'),
}

/** What a page says after an action: `?done=` names one of these texts, so that no text of a URL is ever shown. */
const NOTICES: Readonly<Record<string, string>> = {
  'channel-added': 'The channel is added. Send a test to see that it works.',
  'channel-changed': 'The channel is changed.',
  'channel-deleted': 'The channel is deleted.',
  'channel-muted': 'The channel is muted.',
  'channel-unmuted': 'The channel receives events again.',
  'badge-key-created': 'The project has a new badge key.',
  'badge-key-revoked': 'The badge key is revoked.',
  'check-acknowledged': 'You have it: nothing more is sent of this meanwhile.',
  'check-created': 'The check is created. Let its job ping it next.',
  'check-deleted': 'The check is deleted.',
  'check-paused': 'The check is paused. It sends no notification until it is resumed.',
  'check-resumed': 'The check is watched again: a success is expected from now on.',
  'check-saved': 'The changes are saved.',
  'check-unacknowledged': 'The acknowledgement has ended: reminders are sent again.',
  'key-revoked': 'The API key is revoked.',
  'logged-out': 'You are logged out.',
  'password-changed': 'Your password is changed, and your other sessions have ended.',
  'ping-key-created': 'The project has a new ping key.',
  'ping-key-revoked': 'The ping key is revoked.',
  'project-changed': 'The project is changed.',
  'project-created': 'The project is created.',
  'project-removed': 'The project is removed.',
  'sent-again': 'The delivery is sent again, at once.',
  'session-ended': 'The session has ended.',
  'silence-created': 'The silence is created.',
  'silence-deleted': 'The silence is deleted. Each check that it covered and that is down is notified now.',
  'test-sent': 'A test is sent. Its outcome is below.',
  'user-changed': 'The user is changed.',
  'user-created': 'The user is created.',
  'user-removed': 'The user is removed.',
}
