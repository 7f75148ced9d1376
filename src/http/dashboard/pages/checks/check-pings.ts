/** The pings of a check: the newest pings on its page, all pings page by page, and one ping with its whole text. */

import { getCheck, type StoredCheck } from '../../../../checks/find-checks.ts'
import {
  getPing,
  listPingEnds,
  type PingRow,
  type PingWithEnd,
  TEXT_END_BYTES,
} from '../../../../checks/find-history.ts'
import { type CheckReview, SHOWN_PINGS } from '../../../../checks/review-check.ts'
import { PING_TYPES, type PingSource, type PingType } from '../../../../domain/check.ts'
import { encodeCursor } from '../../../../domain/page.ts'
import { cleanOutput, toOneLine, withoutBrokenStart } from '../../../../domain/plain-text.ts'
import { parsePart } from '../../../api/faults.ts'
import { PingListQuery } from '../../../api/history.ts'
import { type Html, html, isolated } from '../../html.ts'
import { type Page, type Plain, page, type Request } from '../../page.ts'
import { filled } from '../../ui/form.ts'
import { addressOf, BY_TIME, type Crumb, crumbs, facts, pager, section } from '../../ui/parts.ts'
import { ago, durationWords, exactWords, type When, whenOf } from '../../words/time-words.ts'

export const checkPingRoutes = [
  page('/checks/{id}/pings', 'read', showPings),
  page('/checks/{id}/pings/{ping_id}', 'read', showPing),
  page('/checks/{id}/pings/{ping_id}/text', 'read', sendText),
]

const TYPE_WORDS: Readonly<Record<PingType, string>> = {
  success: 'Success',
  warn: 'Warning',
  start: 'Start',
  fail: 'Failure',
  log: 'Log',
}

const SOURCE_WORDS: Readonly<Record<PingSource, string>> = { http: 'a ping', job: 'its Job' }

/** `fail with exit code 3, took 2 min`. */
export function describePing({ type, exitCode, durationMs }: PingRow): string {
  const code = exitCode === null || exitCode === 0 ? '' : ` with exit code ${exitCode}`
  return `${type}${code}${durationMs === null ? '' : `, took ${durationWords(durationMs)}`}`
}

export function renderPings({ check, pings, hasOlderPings, now }: CheckReview): Html {
  const { id: checkId } = check
  const words = entriesOf(check)
  const none = check.spec.jobArea === null ? 'No ping has come yet.' : 'No run has started yet.'
  if (pings.length === 0) return section('pings-title', words, html`<p class="muted">${none}</p>`)
  const more = html`<p>${hasOlderPings ? html`These are the newest ${SHOWN_PINGS}. <a href="${olderThan(checkId, pings.at(-1)!)}">Older ${words.toLowerCase()}</a> · ` : ''}<a href="/checks/${checkId}/pings">${words} by type</a></p>`
  return section('pings-title', words, renderList(check, pings, whenOf(check, now)), more)
}

/** What the entries of its history are called: Jobs that report do not ping. */
function entriesOf({ spec }: Pick<StoredCheck, 'spec'>): 'Pings' | 'Reports' {
  return spec.jobArea === null ? 'Pings' : 'Reports'
}

function olderThan(checkId: string, { id, createdAt }: PingRow): string {
  return `/checks/${checkId}/pings?cursor=${encodeCursor({ at: createdAt, id })}`
}

function renderList(check: Pick<StoredCheck, 'id' | 'spec'>, pings: readonly PingWithEnd[], when: When): Html {
  return html`<ol class="rows pings">${pings.map((ping) => renderRow(check, ping, when))}</ol>`
}

function renderRow({ id: checkId, spec }: Pick<StoredCheck, 'id' | 'spec'>, ping: PingWithEnd, when: When): Html {
  const { id, type, text, source, createdAt } = ping
  // Where both may report, each entry says which did.
  const from = spec.jobArea === null && source === 'http' ? null : `from ${SOURCE_WORDS[source]}`
  return html`<li id="ping-${id}"><span class="ping ping-${type}">${TYPE_WORDS[type]}</span>
<span class="grow">${metaOf(ping, from)}</span> <a class="quiet" href="/checks/${checkId}/pings/${id}">${when(createdAt)}</a>
${text === null ? '' : html`<details id="text-${id}"><summary>Text, ${sizeWords(text)}</summary>${renderText(checkId, ping, 'end')}</details>`}</li>`
}

function metaOf({ exitCode, durationMs, runId }: PingRow, from: string | null): string {
  const parts = [
    from,
    exitCode === null || exitCode === 0 ? null : `exit code ${exitCode}`,
    durationMs === null ? null : durationWords(durationMs),
    runId === null ? null : `run ${runId.slice(0, 8)}`,
  ]
  return parts.filter((part) => part !== null).join(' · ')
}

function sizeWords({ size, isTruncated }: NonNullable<PingWithEnd['text']>): string {
  const bytes = size === 1 ? '1 byte' : size < 1_024 ? `${size} bytes` : `${Math.round(size / 102.4) / 10} KB`
  return size === 0 ? 'not kept' : isTruncated ? `the last ${bytes} of a longer one` : bytes
}

/** The end of a ping's text. `place` makes its id unique on a page that shows it twice. */
export function renderText(checkId: string, { id, text }: PingWithEnd, place: 'end' | 'last'): Html {
  if (text === null) return html``
  if (text.size === 0)
    return html`<p class="muted">The text was not kept: it was compressed, or larger than 1 MB. The ping counts.</p>`
  const isCut = text.size > text.bytes.length
  const shown = readJobText(text.bytes, isCut || text.isTruncated)
  const whole = html`<a href="/checks/${checkId}/pings/${id}">${isCut ? `The last ${TEXT_END_BYTES / 1_024} KB; show the whole text` : 'Whole text'}</a>`
  if (shown === null)
    return html`<p class="muted">The job sent binary data. <a href="/checks/${checkId}/pings/${id}/text">Show it</a></p>`
  if (shown === '') return html`<p class="muted">The text is empty. ${whole}</p>`
  return html`<div class="output-end" id="${place}-${id}" role="group" aria-label="Text of a ping" tabindex="0"><pre class="output" dir="auto">${shown}</pre></div><p class="after-output">${whole}</p>`
}

const crumbsTo = ({ id, name }: StoredCheck): readonly Crumb[] => [
  ['/checks', 'Checks'],
  [`/checks/${id}`, isolated(name)],
]

async function showPings(request: Request): Promise<Page> {
  const { context, caller, params, query, now } = request
  const check = await getCheck(context, caller, params.id!)
  const asked = filled(query, ['type', 'cursor'])
  const { type = null, cursor: after = null } = parsePart('query', PingListQuery, asked)
  const page = { limit: SHOWN_PINGS, after }
  const { rows, next } = await listPingEnds(context, caller, check.id, type === null ? {} : { type }, page)
  const path = `/checks/${check.id}/pings`
  const link = (to: string, words: string, isCurrent: boolean) =>
    html`<li><a href="${to}"${isCurrent ? html` aria-current="page"` : ''}>${words}</a></li>`
  const main = html`${crumbs(crumbsTo(check))}
<h1>${entriesOf(check)} of ${isolated(check.name)}</h1>
<nav class="filter" aria-label="Types"><ul>
${link(path, 'All', type === null)}
${PING_TYPES.map((one) => link(addressOf(path, { type: one }), TYPE_WORDS[one], type === one))}
</ul></nav>
${
  rows.length === 0
    ? html`<p class="muted">${after === null ? `No such ${check.spec.jobArea === null ? 'ping' : 'report'} is in the history.` : 'There are no older ones.'}</p>`
    : renderList(check, rows, whenOf(check, now))
}
${pager(path, asked, next && encodeCursor(next), BY_TIME)}`
  return { kind: 'page', title: `${entriesOf(check)} of ${toOneLine(check.name)}`, main }
}

async function showPing({ context, caller, params, now }: Request): Promise<Page> {
  const check = await getCheck(context, caller, params.id!)
  const ping = await getPing(context, caller, check.id, params.ping_id!)
  const { id, type, exitCode, durationMs, runId, createdAt, source, body, isBodyTruncated } = ping
  const bytes = body === null || body.length === 0 ? null : body
  const text = bytes === null ? null : readJobText(bytes, isBodyTruncated)
  const main = html`${crumbs([...crumbsTo(check), [`/checks/${check.id}/pings`, entriesOf(check)]])}
<h1>${TYPE_WORDS[type]} of ${isolated(check.name)}</h1>
${facts([
  ['Came', html`${ago(createdAt, now)} <span class="muted">${exactWords(createdAt)}</span>`],
  ['Exit code', exitCode],
  ['Took', durationMs === null ? null : durationWords(durationMs)],
  ['Run id', runId && html`<code>${runId}</code>`],
  ['Source', source === 'http' ? 'HTTP' : 'the Job of a CronJob'],
  ['Id', html`<code>${id}</code>`],
])}
${section(
  'text-title',
  'Text',
  bytes === null
    ? html`<p class="muted">${isBodyTruncated ? 'The text was not kept: it was compressed, or larger than 1 MB.' : 'It came without a text.'}</p>`
    : html`${isBodyTruncated ? html`<p class="muted">The job sent more: the last ${bytes.length} bytes are kept.</p>` : ''}
${text === null ? html`<p class="muted">The job sent binary data: ${bytes.length} bytes.</p>` : html`<pre class="output" dir="auto">${text}</pre>`}
<p><a href="/checks/${check.id}/pings/${id}/text">Original text</a></p>`,
)}`
  return { kind: 'page', title: `${TYPE_WORDS[type]} of ${toOneLine(check.name)}`, main }
}

async function sendText({ context, caller, params }: Request): Promise<Plain> {
  const { body } = await getPing(context, caller, params.id!, params.ping_id!)
  return { kind: 'plain', bytes: body ?? Buffer.alloc(0) }
}

/** Without bytes of a character that was cut, colours and control characters. Null: it is not text. */
export function readJobText(bytes: Buffer, isCut: boolean): string | null {
  const text = (isCut ? withoutBrokenStart(bytes) : bytes).toString('utf8')
  if (isBinary(text)) return null
  return cleanOutput(text)
}

/** More than a tenth is not UTF-8, or is NUL, which no text has. */
const isBinary = (text: string): boolean => text.split(/[\uFFFD\0]/).length - 1 > text.length / 10
