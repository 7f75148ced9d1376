/**
 * The script of the dashboard. Pages work without it. It reads the page again when something changed and carries the differences over; keeps times
 * up to date by the server's clock; copies texts; keeps what was typed over a log-in; shows what a schedule means while it is typed.
 */

const POLL_MS = 25_000
/** A page is read at most once in this time, and pages not all at the same moment. */
const FETCH_MS = 1_000
const SPREAD_MS = 400
const SELECTION_MS = 30_000
const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

const relative = new Intl.RelativeTimeFormat('en', { numeric: 'always' })
const local = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'long' })
/** From this length on, in these units. @type {[number, number, Intl.RelativeTimeFormatUnit][]} */
const UNITS = [
  [730 * DAY_MS, 365 * DAY_MS, 'year'],
  [60 * DAY_MS, 30 * DAY_MS, 'month'],
  [DAY_MS, DAY_MS, 'day'],
  [3_600_000, 3_600_000, 'hour'],
  [MINUTE_MS, MINUTE_MS, 'minute'],
]

/** The same words as the server's (time-words.ts). @param {number} at @param {number} now */
export function relativeWords(at, now) {
  const ms = at - now
  const [, size, unit] = UNITS.find(([from]) => Math.abs(ms) >= from) ?? []
  if (size !== undefined && unit !== undefined) return relative.format(Math.trunc(ms / size), unit)
  return ms > 0 ? 'in less than a minute' : ms > -10_000 ? 'just now' : 'less than a minute ago'
}

/** The wait before the next try after so many failures in a row. @param {number} failures @param {number} random from 0 to 1 */
export function backOff(failures, random) {
  const most = Math.min(30_000, 1_000 * 2 ** failures)
  return most / 2 + (most / 2) * random
}

/** The longest wait before a page is read again. @param {number} next when its next check becomes late, or NaN @param {number} now */
export const restMs = (next, now) => (next - now < POLL_MS ? Math.max(next - now, 0) : POLL_MS)

// Times ----------------------------------------------------------------------------------------------------------------------

/** The server's time minus the browser's: clocks differ. */
let offsetMs = 0
/** When the server made what is shown, and sent the last event. */
let [shownAt, changedAt] = ['', '']

/** @param {Document} page */
function readTime(page) {
  shownAt = page.querySelector('meta[name=server-time]')?.getAttribute('content') ?? ''
  offsetMs = (Date.parse(shownAt) || Date.now()) - Date.now()
}

function refreshTimes() {
  for (const time of document.querySelectorAll('time[datetime]')) {
    const at = Date.parse(time.getAttribute('datetime') ?? '')
    const words = relativeWords(at, Date.now() + offsetMs)
    if (time.textContent !== words) time.textContent = words
    if (time.getAttribute('title') !== local.format(at)) time.setAttribute('title', local.format(at))
  }
}

// Addresses ------------------------------------------------------------------------------------------------------------------

/** What a proxy has before our own paths: this script is in `/assets/`. */
const SITE_PATH = import.meta.url.startsWith('http') ? new URL('..', import.meta.url).pathname.slice(0, -1) : ''

/** Without that. @param {{ pathname: string }} address */
const pathOf = ({ pathname }) => pathname.slice(pathname.startsWith(`${SITE_PATH}/`) ? SITE_PATH.length : 0)

// The page, read again ---------------------------------------------------------------------------------------------------------

/** Forms in which something was typed, and buttons that say "Copied". @type {WeakSet<Node>} */
const edited = new WeakSet()
let [selectedAt, readAt, failures] = [0, 0, 0]
let [isReading, isWanted] = [false, false]
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer

const isLive = () => !document.hidden && document.querySelector('main')?.dataset.live !== 'none'
const isError = () => document.querySelector('main')?.dataset.form === 'keep'
const spread = () => SPREAD_MS * Math.random()
const nextLate = () => document.querySelector('main')?.dataset.next ?? ''
const rest = () => restMs(Date.parse(nextLate()), Date.now() + offsetMs) + spread()

/** Reads the page after `waitMs`. @param {number} waitMs */
function readSoon(waitMs) {
  clearTimeout(timer)
  isWanted ||= isReading
  if (isLive() && !isReading) timer = setTimeout(read, Math.max(waitMs, readAt + FETCH_MS - Date.now()))
}

async function read() {
  if (isSelecting()) return readSoon(FETCH_MS)
  ;[isReading, isWanted] = [true, false]
  readAt = Date.now()
  try {
    // Windows share what is read again from this time on.
    const lateAt = Date.parse(nextLate()) <= Date.now() + offsetMs ? nextLate() : ''
    const headers = { 'X-Refresh': [shownAt, changedAt, lateAt].sort()[2] ?? '' }
    const response = await fetch(location.href, { headers, signal: AbortSignal.timeout(10_000) })
    if (response.redirected && pathOf(new URL(response.url)) === '/login') return location.assign(response.url)
    if (response.status >= 500 || response.status === 429) throw new Error(`status ${response.status}`)
    show(new DOMParser().parseFromString(await response.text(), 'text/html'))
    failures = 0
    setConnection('')
    listen()
  } catch {
    const at = new Date(Date.parse(shownAt) || Date.now()).toTimeString().slice(0, 5)
    setConnection(`Connection lost, showing the state of ${at}; trying again`)
    failures += 1
  } finally {
    isReading = false
    readSoon(failures > 0 ? backOff(failures, Math.random()) : isWanted ? spread() : rest())
  }
}

/** What is marked is about to be copied. */
function isSelecting() {
  const selection = getSelection()
  const isMarked = selection?.isCollapsed === false && document.querySelector('main')?.contains(selection.anchorNode)
  return isMarked && Date.now() - selectedAt < SELECTION_MS
}

/** @param {Document} page */
function show(page) {
  const [before, after] = [document.querySelector('main'), page.querySelector('main')]
  if (before === null || after === null) throw new Error('not a page of ours')
  // A new release: its pages and this script may not fit together. During an update both releases respond, each in its turn.
  const mayReload = performance.now() > MINUTE_MS && !document.querySelector('form:focus-within')
  if (scriptsOf(page) !== scriptsOf(document) && mayReload) return location.reload()
  document.title = page.title
  document.querySelector('link[rel=icon]')?.replaceWith(page.querySelector('link[rel=icon]') ?? '')
  readTime(page)
  const wasError = isError()
  // @ts-expect-error a global of its own script
  Idiomorph.morph(before, after, { callbacks: { beforeNodeMorphed: mayMorph, beforeNodeRemoved: mayRemove } })
  refreshTimes()
  if (wasError) restoreForms()
}

/** @param {Document} page */
const scriptsOf = (page) => Array.from(page.scripts, (script) => script.getAttribute('src')).join()

/** @param {Node} before @param {Node} after */
function mayMorph(before, after) {
  if (before instanceof HTMLDetailsElement && after instanceof HTMLDetailsElement) after.open = before.open
  return !edited.has(before) && !(before instanceof HTMLFormElement && before.contains(document.activeElement))
}

/** What an action said stays until the next page. @param {Node} node */
const mayRemove = (node) => !edited.has(node) && !(node instanceof Element && node.id === 'notice')

/** A line over the lower edge, which moves nothing. @param {string} text */
function setConnection(text) {
  const line = document.getElementById('connection') ?? document.body.appendChild(document.createElement('p'))
  Object.assign(line, { id: 'connection', role: 'status', hidden: text === '', textContent: text })
}

// Events -----------------------------------------------------------------------------------------------------------------------

/** @type {EventSource | undefined} */
let stream
/** Crowded out: other windows of the session took our place, and this one only polls. */
let [streamFailures, isCrowdedOut] = [0, false]

function listen() {
  if (stream !== undefined || isCrowdedOut || !isLive()) return
  const query = new URLSearchParams({ since: shownAt })
  const [, id] = /^\/checks\/([0-9a-f-]{36})(?:\/how)?$/i.exec(pathOf(location)) ?? []
  if (id) query.set('check', id)
  const openedAt = Date.now()
  stream = new EventSource(`${SITE_PATH}/live?${query}`)
  for (const name of ['change', 'reload'])
    stream.addEventListener(name, ({ data }) => {
      changedAt = JSON.parse(data).at
      readSoon(spread())
    })
  stream.addEventListener('end', ({ data }) => {
    unlisten()
    isCrowdedOut = JSON.parse(data).reason === 'many'
    readSoon(isCrowdedOut ? rest() : 0)
  })
  // A new stream follows when the page could be read: then the server is there.
  stream.onerror = () => {
    unlisten()
    streamFailures = Date.now() - openedAt > 10_000 ? 0 : streamFailures + 1
    readSoon(backOff(streamFailures, Math.random()))
  }
}

function unlisten() {
  stream?.close()
  stream = undefined
}

/** A hidden page costs nothing. */
function onVisibility() {
  isCrowdedOut = false
  if (document.hidden) unlisten()
  readSoon(0)
}

// Copies -----------------------------------------------------------------------------------------------------------------------

/** @param {HTMLElement} button @param {HTMLElement} source */
async function copy(button, source) {
  const text = source instanceof HTMLInputElement ? source.value : (source.textContent ?? '')
  try {
    // Browsers offer the clipboard over https and on localhost only.
    await navigator.clipboard.writeText(text)
  } catch {
    getSelection()?.selectAllChildren(source)
    if (!document.execCommand('copy')) return
  }
  const label = [...button.childNodes].findLast((node) => node instanceof Text && /Copy/.test(node.data))
  if (!(label instanceof Text)) return
  label.data = label.data.replace('Copy', 'Copied')
  edited.add(button)
  setTimeout(() => edited.delete(button) && label.replaceData(label.data.indexOf('Copied'), 6, 'Copy'), 2_000)
}

// Forms ------------------------------------------------------------------------------------------------------------------------

const BACK = 'back-after-login'
// With what the form showed (ui/form.ts): a field that the user left alone is no change, whatever another user has made of it.
const NOT_KEPT = '[type=password], [type=hidden]:not([name=was]), [type=file], [type=submit], [data-secret]'
const FIELD = `:is(input, select, textarea)[name]:not(${NOT_KEPT})`

/** The fields that may be kept. @param {HTMLFormElement} form @returns {HTMLInputElement[]} */
const fieldsOf = (form) => [...form.querySelectorAll(/** @type {'input'} */ (FIELD))]
/** @param {HTMLInputElement} field @returns {'checked' | 'value'} */
const contentOf = (field) => (['checkbox', 'radio'].includes(field.type) ? 'checked' : 'value')
/** One box of several has their name. @param {HTMLInputElement} field */
const keyOf = (field) => (contentOf(field) === 'checked' ? `${field.name}=${field.value}` : field.name)

/** After a log-in or an error in between; a form that was left otherwise begins anew. */
function restoreForms() {
  if (isError() || /^\/login(\/|$)/.test(pathOf(location))) return sessionStorage.setItem(BACK, '1')
  const isBack = sessionStorage.getItem(BACK) !== null
  const kept = Object.entries(sessionStorage)
  sessionStorage.clear()
  for (const [key, values] of isBack ? kept : []) {
    const form = [...document.forms].find(({ dataset }) => `keep:${dataset.keep}` === key)
    if (form !== undefined) restore(form, JSON.parse(values))
  }
}

/** @param {HTMLFormElement} form @param {Record<string, string | boolean>} kept */
function restore(form, kept) {
  for (const field of fieldsOf(form))
    Object.assign(field, { [contentOf(field)]: kept[keyOf(field)] ?? field[contentOf(field)] })
  form.closest('details')?.setAttribute('open', '')
  const textContent = 'What you typed before is here again, except passwords and secrets.'
  form.prepend(Object.assign(document.createElement('p'), { className: 'notice', role: 'status', textContent }))
  form.dispatchEvent(new Event('input', { bubbles: true }))
}

let [previewTimer, previews] = [0, 0]

/** @param {HTMLFormElement} form @param {string} address */
async function preview(form, address) {
  previews += 1
  const own = previews
  const fields = fieldsOf(form).filter(({ dataset }) => dataset.preview)
  const query = new URLSearchParams(fields.map(({ name, value }) => [name, value]))
  const response = await fetch(`${address}?${query}`).catch(() => null)
  if (response === null || !response.ok || response.redirected) return
  const { body } = new DOMParser().parseFromString(await response.text(), 'text/html')
  // An older one may come last.
  if (own === previews) document.getElementById('preview')?.replaceChildren(...body.childNodes)
  refreshTimes()
}

/** @param {Event} event */
function onInput({ target }) {
  const form = target instanceof Element && target.closest('form')
  if (!form) return
  if ('submit' in form.dataset && target instanceof HTMLSelectElement) return form.requestSubmit()
  edited.add(form)
  const values = Object.fromEntries(fieldsOf(form).map((field) => [keyOf(field), field[contentOf(field)]]))
  if (form.dataset.keep) sessionStorage.setItem(`keep:${form.dataset.keep}`, JSON.stringify(values))
  const address = form.querySelector('[data-preview]')?.getAttribute('data-preview')
  clearTimeout(previewTimer)
  if (address) previewTimer = setTimeout(() => preview(form, address), 300)
}

function start() {
  // What `?done=` says is for this visit only.
  const address = new URL(location.href)
  address.searchParams.delete('done')
  history.replaceState(null, '', address)
  readTime(document)
  refreshTimes()
  document.querySelector('[data-time-zone]')?.setAttribute('value', Intl.DateTimeFormat().resolvedOptions().timeZone)
  setInterval(refreshTimes, 10_000)
  document.addEventListener('visibilitychange', onVisibility)
  document.addEventListener('selectionchange', () => {
    selectedAt = Date.now()
  })
  document.addEventListener('input', onInput)
  document.addEventListener('click', ({ target }) => {
    const button = target instanceof Element ? target.closest('[data-copy]') : null
    const source = document.getElementById(button?.getAttribute('data-copy') ?? '')
    if (button instanceof HTMLElement && source !== null) void copy(button, source)
  })
  restoreForms()
  addEventListener('online', () => readSoon(0))
  addEventListener('pagehide', unlisten)
  addEventListener('pageshow', ({ persisted }) => persisted && onVisibility())
  listen()
  readSoon(document.querySelector('main[data-live=retry]') === null ? rest() : backOff(1, Math.random()))
}

if (typeof document !== 'undefined') start()
