/** `/checks/{id}/how`: how the job of a check pings, in the languages of users. */

import { type CheckRecord, getCheck } from '../../../../checks/find-checks.ts'
import { includesScope } from '../../../../domain/access.ts'
import type { Instant } from '../../../../domain/check.ts'
import { type Html, html, isolated } from '../../html.ts'
import { type Page, page, type Request } from '../../page.ts'
import { copyButton, crumbs, table } from '../../ui/parts.ts'
import { ago } from '../../words/time-words.ts'
import { declarerOf } from './check-kubernetes.ts'
import { type Snippet, snippetsOf } from './snippets.ts'

export const howRoutes = [page('/checks/{id}/how', 'read', show)]

async function show({ context, caller, params, pingUrl, now }: Request): Promise<Page> {
  const check = await getCheck(context, caller, params.id ?? '')
  const mayPing = includesScope(caller.scope, 'write')
  const main = html`${crumbs([[`/checks/${check.id}`, isolated(check.name)]])}
<h1>How ${isolated(check.name)} pings</h1>
<p id="arrived" class="arrived" role="status">${renderArrival(check, now)}</p>
<p><a href="/checks/${check.id}"${mayPing ? nextStep(check) : ''}>Go to the check</a></p>
${mayPing ? renderHow(check, `${pingUrl()}/ping/${check.publicId}`) : ONLY_READ}`
  return { kind: 'page', title: `How ${check.name} pings`, main, live: 'check' }
}

const ONLY_READ = html`<p>The ping URL is the right to ping, so the scope <code>read</code> of your account does not show it. Users with the scope <code>write</code> or <code>admin</code> can open this page and give it to the job.</p>`

/** The check, once a ping has arrived. Before that, the next step is a ping. */
const nextStep = ({ state }: CheckRecord) =>
  state.pingsTotal > 0 ? html` class="button"` : html` class="button secondary outline"`

function renderArrival({ state }: CheckRecord, now: Instant): Html {
  const { pingsTotal, lastPingAt, lastStartAt } = state
  if (pingsTotal === 0)
    return html`No ping has arrived yet. <span class="script-only">This line changes as soon as one does.</span>`
  const last = Math.max(lastPingAt ?? 0, lastStartAt ?? 0)
  // Pings of the kind log alone have no such time.
  if (last === 0) return html`Pings arrive.`
  return html`Pings arrive: the last one came ${ago(last, now)}.`
}

function renderHow(check: CheckRecord, url: string): Html {
  const { slug, spec } = check
  const resource = declarerOf(check)
  const snippets = snippetsOf({ pingUrl: url, slug, kubernetes: resource, isFollowed: spec.jobArea !== null, ...spec })
  // Users of Kubernetes need this snippet first.
  if (resource !== null) snippets.sort((a, b) => Number(b.id === 'kubernetes') - Number(a.id === 'kubernetes'))
  return html`<section class="snippet">
<h2>Ping URL</h2>${copyButton('ping-url', 'the ping URL')}
<pre tabindex="0"><code id="ping-url">${url}</code></pre>
</section>
<p class="muted">Each request to it reports a success of the job: treat it as a secret.</p>
<nav aria-label="Snippets" class="snippet-list"><ul>${snippets.map(
    ({ id, title }) => html`<li><a href="#how-${id}">${title}</a></li>`,
  )}</ul></nav>
${snippets.map(renderSnippet)}
<h2>More signals</h2>
<p class="muted">The URL alone is a success.</p>
${table<(typeof SIGNALS)[number]>(
  [
    ['Behind the URL', ([signal]) => html`<code>${signal}</code>`],
    ['Meaning', ([, meaning]) => meaning],
  ],
  SIGNALS,
)}`
}

const SIGNALS = [
  ['/start', 'The job started. With a maximum run time, a run that takes longer is noticed.'],
  ['/fail', 'The job failed: the check goes down at once.'],
  ['/3', 'The job ended with this exit code. 0 is a success, 1 to 255 are failures.'],
  ['/log', 'The text of the request is stored, and nothing else changes.'],
] as const

function renderSnippet({ id, title, note, text }: Snippet): Html {
  return html`<section id="how-${id}" class="snippet">
<h2>${title}</h2>${copyButton(`snippet-${id}`, title)}
<p class="muted">${note}</p>
<pre tabindex="0"><code id="snippet-${id}">${text}</code></pre>
</section>`
}
