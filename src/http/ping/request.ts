/** Parses a ping request (interface, section 4.2; design, section 3.3). Pure. Each part is read once. */

import type { PingType } from '../../domain/check.ts'
import { isUuid } from '../../domain/ids.ts'
import { LIMITS } from '../../domain/limits.ts'
import { toOneLine } from '../../domain/plain-text.ts'
import { PUSH_TOKEN } from '../../domain/push-token.ts'
import { type CheckName, isSlug } from '../../domain/slug.ts'
import { cutParameters } from '../parameters.ts'

export interface Signal {
  readonly type: PingType
  /** 0 for a success; null when the request has none. */
  readonly exitCode: number | null
}

/** Whose ping it is. `publicId`: in lower case. */
export type Address =
  | { readonly publicId: string; readonly name?: undefined }
  | { readonly publicId?: undefined; readonly name: CheckName }

/** `given`: as in the path, of any length. */
export type UnusableSignal = Address & { readonly kind: 'unknown_signal' | 'invalid_exit_code'; readonly given: string }

export type PingPath =
  /** `signal`: null for a path without one. It is a success, unless the query says otherwise. */
  | (Address & { readonly kind: 'ping'; readonly signal: Signal | null })
  | UnusableSignal
  /** `name.slug`: as in the path, of any length. */
  | { readonly kind: 'invalid_slug'; readonly name: CheckName }
  /** `token`: null for a text that is none. */
  | { readonly kind: 'push'; readonly token: string | null }

const PREFIX = '/ping/'
const ID_LENGTH = 36
const PING_KEY_LENGTH = 22
const PUSH_PREFIX = '/api/push/'

const SUCCESS: Signal = { type: 'success', exitCode: 0 }
const START: Signal = { type: 'start', exitCode: null }
const FAIL: Signal = { type: 'fail', exitCode: null }
const LOG: Signal = { type: 'log', exitCode: null }
const WARN: Signal = { type: 'warn', exitCode: null }
/** By their words in the path. */
const SIGNALS: ReadonlyMap<string, Signal> = new Map([
  ['start', START],
  ['fail', FAIL],
  ['log', LOG],
  ['warn', WARN],
])

/**
 * `[/ping]/<public_id>` or `[/ping]/<ping_key>/<slug>`, then `[/start|/fail|/warn|/log|/<exit code>]`, with at most one
 * slash at the end; or `/api/push/<token>`. Null for a path that names no check.
 */
export function parsePingPath(path: string): PingPath | null {
  const start = path.startsWith(PREFIX) ? PREFIX.length : 1
  const idEnd = start + ID_LENGTH
  const id = path.slice(start, idEnd)
  if (isUuid(id) && path.charCodeAt(0) === SLASH) return parseRest(path.slice(idEnd), { publicId: id.toLowerCase() })
  return parseName(path, start) ?? parsePush(path)
}

const SLASH = 47

function parseName(path: string, start: number): PingPath | null {
  const keyEnd = start + PING_KEY_LENGTH
  const pingKey = path.slice(start, keyEnd)
  if (path.charCodeAt(0) !== SLASH || path.charCodeAt(keyEnd) !== SLASH || !/^[A-Za-z0-9]{22}$/.test(pingKey))
    return null
  const slash = path.indexOf('/', keyEnd + 1)
  const slugEnd = slash === -1 ? path.length : slash
  const name = { pingKey, slug: path.slice(keyEnd + 1, slugEnd) }
  if (name.slug === '') return null
  return isSlug(name.slug) ? parseRest(path.slice(slugEnd), { name }) : { kind: 'invalid_slug', name }
}

function parsePush(path: string): PingPath | null {
  if (!path.startsWith(PUSH_PREFIX)) return null
  const token = path.slice(PUSH_PREFIX.length, path.endsWith('/') ? -1 : undefined)
  return { kind: 'push', token: PUSH_TOKEN.test(token) ? token : null }
}

function parseRest(rest: string, address: Address): PingPath | null {
  if (rest === '' || rest === '/') return { kind: 'ping', ...address, signal: null }
  if (!rest.startsWith('/')) return null
  const given = rest.endsWith('/') ? rest.slice(1, -1) : rest.slice(1)
  const signal = SIGNALS.get(given)
  if (signal !== undefined) return { kind: 'ping', ...address, signal }
  if (!/^[+-]?\d+$/.test(given)) return { kind: 'unknown_signal', ...address, given }
  if (!/^0*\d{1,3}$/.test(given) || Number(given) > LIMITS.exitCode)
    return { kind: 'invalid_exit_code', ...address, given }
  const exitCode = Number(given)
  return { kind: 'ping', ...address, signal: { type: exitCode === 0 ? 'success' : 'fail', exitCode } }
}

/** For the `Ping-Warning` header. The names are labels of a counter: no text of the request. */
export const PING_WARNINGS = {
  duration_invalid: `duration ignored: not an integer from 0 to ${LIMITS.durationMs}`,
  duration_unexpected: 'duration ignored: only success, warn, fail and exit code pings carry one',
  run_id_invalid: 'rid ignored: not a UUID',
  run_refused: `no run opened: ${LIMITS.openRuns} are open already`,
  state_invalid: 'state ignored: no word that is known',
  status_invalid: 'status ignored: no word that is known',
  word_unknown: 'unknown status: the ping counts as a failure; successes are ok, up, success, complete',
  signal_overridden: 'state and status ignored: the path takes precedence',
  state_overridden: 'state ignored: status says that the job failed',
  status_overridden: 'status ignored: state takes precedence',
  parameter_unknown: 'unknown parameters ignored: the known ones are duration, rid, state and status',
} as const
export type PingWarning = keyof typeof PING_WARNINGS

export interface PingMetadata {
  readonly signal: Signal
  readonly durationMs: number | null
  /** Lower case. */
  readonly runId: string | null
  /** What `msg` of Uptime Kuma says about a failure, and `unknown`. */
  readonly text: string | null
  /** The word that made it a failure although it is not known, for people. */
  readonly unknown: string | null
  readonly isCreating: boolean
  readonly warnings: readonly PingWarning[]
}

const PLAIN: PingMetadata = {
  signal: SUCCESS,
  durationMs: null,
  runId: null,
  text: null,
  unknown: null,
  isCreating: false,
  warnings: [],
}

/**
 * Never fails: invalid metadata must not lose a ping. The signal of the path takes precedence over `state` and
 * `status`, and the header takes precedence over `duration` in the query.
 */
export function parsePingMetadata(
  inPath: Signal | null,
  durationHeader: string | undefined,
  query: string,
): PingMetadata {
  if (durationHeader === undefined && query === '') return inPath === null ? PLAIN : { ...PLAIN, signal: inPath }
  const parameters = readParameters(query)
  const warnings: PingWarning[] = []
  const { signal, unknown } = chooseSignal(inPath, parameters, warnings)

  const given = durationHeader ?? parameters.duration ?? kumaDuration(parameters)
  let durationMs: number | null = null
  if (given !== null && (signal.type === 'start' || signal.type === 'log')) warnings.push('duration_unexpected')
  else if (given !== null) {
    durationMs = parseDuration(given)
    if (durationMs === null) warnings.push('duration_invalid')
  }

  const { rid } = parameters
  const runId = rid !== null && isUuid(rid) ? rid.toLowerCase() : null
  if (rid !== null && runId === null) warnings.push('run_id_invalid')
  const isKuma = parameters.status !== null
  if (parameters.hasUnknown || (!isKuma && (parameters.msg !== null || parameters.ping !== null)))
    warnings.push('parameter_unknown')
  const message = isKuma && signal.type === 'fail' ? parameters.msg : null
  const text = joinTexts(message, unknown)
  return { signal, durationMs, runId, text, unknown, isCreating: parameters.isCreating, warnings }
}

/** Of a URL of Uptime Kuma, which ignores parameters that it does not know. Without a word it is a success. */
export function parsePushMetadata(query: string): PingMetadata {
  const parameters = readParameters(query)
  const status = parameters.status?.trim() || 'up'
  const warnings: PingWarning[] = []
  const { signal, unknown } = chooseSignal(null, { state: null, status }, warnings)
  const given = signal.type === 'start' ? null : kumaDuration({ ...parameters, status })
  const durationMs = given === null ? null : parseDuration(given)
  if (given !== null && durationMs === null) warnings.push('duration_invalid')
  const message = signal.type === 'fail' ? parameters.msg : null
  return { ...PLAIN, signal, durationMs, text: joinTexts(message, unknown), unknown, warnings }
}

/** What made it a failure comes last, where no cut reaches: a template sends `msg=OK` with every word. */
function joinTexts(message: string | null, unknown: string | null): string | null {
  return [message, unknown].filter(Boolean).join('\n') || null
}

/** Several times what there are. A query can hold thousands, and to decode thousands takes long. */
const MOST_PARAMETERS = 50

interface Parameters {
  /** Null: not given. A parameter given twice is the empty text, which is invalid; of two parameters, both values. */
  duration: string | null
  rid: string | null
  /** Of Cronitor. */
  state: string | null
  /** Of Uptime Kuma, as are the next two: its form is `?status=up&msg=OK&ping=`. */
  status: string | null
  msg: string | null
  ping: string | null
  /** Of healthchecks. */
  isCreating: boolean
  hasUnknown: boolean
}
const NO_TEXTS = { duration: null, rid: null, state: null, status: null, msg: null, ping: null }

function readParameters(query: string): Parameters {
  const { few, hasOthers } = cutParameters(query, MOST_PARAMETERS).isCut
    ? pickKnown(query)
    : { few: query, hasOthers: false }
  const read: Parameters = { ...NO_TEXTS, isCreating: false, hasUnknown: hasOthers }
  for (const [name, value] of new URLSearchParams(few)) {
    switch (name) {
      case 'duration':
      case 'rid':
      case 'msg':
      case 'ping':
        read[name] = read[name] === null ? value : ''
        break
      case 'state':
      case 'status':
        read[name] = addWord(read[name], value)
        break
      // In the address of a public id it says nothing: that check exists.
      case 'create':
        read.isCreating = value === '1'
        break
      default:
        read.hasUnknown = true
    }
  }
  return read
}

/** Two different words of one parameter contradict each other. */
function addWord(word: string | null, value: string): string {
  return word === null || word === value ? value : `${word}, ${value}`.slice(0, MOST_ECHOED)
}

const WORD = /^(?:state|status)(?:=|$)/
const OTHER_KNOWN = /^(?:duration|rid|msg|ping|create)(?:=|$)/

/** The first parameters that mean something, as they are written. A word that is repeated hides no failure. */
function pickKnown(query: string): { readonly few: string; readonly hasOthers: boolean } {
  const parts = query.split('&').filter(Boolean)
  const words = parts.filter((part) => WORD.test(part))
  const others = parts.filter((part) => OTHER_KNOWN.test(part))
  const kept = [[...new Set(words)], others].flatMap((known) => known.slice(0, MOST_PARAMETERS))
  return { few: kept.join('&'), hasOthers: words.length + others.length < parts.length }
}

/** What other services and scripts write. */
const WORDS: ReadonlyMap<string, Signal> = new Map([
  ...['ok', 'up', 'complete', 'success'].map((word) => [word, SUCCESS] as const),
  ...['error', 'err', 'down', 'critical', 'crit', 'timeout', 'ko'].map((word) => [word, FAIL] as const),
  ...['run', 'start', 'in_progress'].map((word) => [word, START] as const),
  ...['warn', 'warning'].map((word) => [word, WARN] as const),
])
const STATUS_WORDS: ReadonlyMap<string, Signal> = new Map([...WORDS, ['0', FAIL], ['false', FAIL]])

/** Undefined: no word that is known. */
function readWord(given: string | null, words: ReadonlyMap<string, Signal>): Signal | undefined {
  if (given === null) return undefined
  const word = given.trim().toLowerCase()
  return word.startsWith('fail') ? FAIL : words.get(word)
}

const isWord = (given: string | null) => given !== null && given.trim() !== ''
const MOST_ECHOED = 100

interface ChosenSignal {
  readonly signal: Signal
  /** What made it a failure, for people; null: a word that is known, or none. */
  readonly unknown: string | null
}

/** A word that is not known is never a success: of what it means, only the job knows. */
function chooseSignal(
  inPath: Signal | null,
  { state, status }: Pick<Parameters, 'state' | 'status'>,
  warnings: PingWarning[],
): ChosenSignal {
  const byState = readWord(state, WORDS)
  const byStatus = readWord(status, STATUS_WORDS)
  const unknown = [
    ...(byState === undefined && isWord(state) ? [state!] : []),
    ...(byStatus === undefined && isWord(status) ? [status!] : []),
  ]
  if (inPath === null && unknown.length > 0) {
    warnings.push('word_unknown')
    return { signal: FAIL, unknown: `unknown status "${toOneLine(unknown.join(', ').slice(0, MOST_ECHOED))}"` }
  }
  if (state !== null && byState === undefined) warnings.push('state_invalid')
  if (status !== null && byStatus === undefined) warnings.push('status_invalid')
  const differs = (signal: Signal, from: Signal | undefined) => from !== undefined && from.type !== signal.type
  if (inPath !== null) {
    if (differs(inPath, byState) || differs(inPath, byStatus)) warnings.push('signal_overridden')
    return { signal: inPath, unknown: null }
  }
  if (byState === undefined || !differs(byState, byStatus))
    return { signal: byState ?? byStatus ?? SUCCESS, unknown: null }
  const isFailure = byStatus === FAIL
  warnings.push(isFailure ? 'state_overridden' : 'status_overridden')
  return { signal: isFailure ? FAIL : byState, unknown: null }
}

/** Milliseconds, often empty; some clients send a fraction. */
function kumaDuration({ status, ping }: Parameters): string | null {
  if (status === null || ping === null || ping === '') return null
  return /^\d{1,9}\.\d{1,20}$/.test(ping) ? String(Math.round(Number(ping))) : ping
}

function parseDuration(text: string): number | null {
  if (!/^\d{1,9}$/.test(text)) return null
  const durationMs = Number(text)
  return durationMs <= LIMITS.durationMs ? durationMs : null
}
