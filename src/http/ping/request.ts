/**
 * Parses the path, the query, the duration and the run id of a ping request (interface, section 4.2; design, section 3.3). Pure. What comes from
 * the request has the length of a head at most (server.ts), and each part is read once.
 */

import type { PingType } from '../../domain/check.ts'
import { isUuid } from '../../domain/ids.ts'
import { LIMITS } from '../../domain/limits.ts'

/** What a ping says. */
export interface Signal {
  readonly type: PingType
  /** 0 for a success; null when the request has none. */
  readonly exitCode: number | null
}

export type PingPath =
  /** `signal`: null for a path without one. It is a success, unless the query says otherwise. */
  | { readonly kind: 'ping'; readonly publicId: string; readonly signal: Signal | null }
  /** `given`: as in the path, of any length. */
  | { readonly kind: 'unknown_signal'; readonly publicId: string; readonly given: string }
  | { readonly kind: 'invalid_exit_code'; readonly publicId: string; readonly given: string }

const PREFIX = '/ping/'
const ID_END = PREFIX.length + 36

const SUCCESS: Signal = { type: 'success', exitCode: 0 }
const START: Signal = { type: 'start', exitCode: null }
const FAIL: Signal = { type: 'fail', exitCode: null }
const LOG: Signal = { type: 'log', exitCode: null }

/** `/ping/<public_id>[/start|/fail|/log|/<exit code>]`, with at most one slash at the end. Null for a path that names no check. Ids become lower case. */
export function parsePingPath(path: string): PingPath | null {
  if (!path.startsWith(PREFIX)) return null
  const id = path.slice(PREFIX.length, ID_END)
  if (!isUuid(id)) return null
  const rest = path.slice(ID_END)
  const publicId = id.toLowerCase()
  switch (rest) {
    case '':
    case '/':
      return { kind: 'ping', publicId, signal: null }
    case '/start':
    case '/start/':
      return { kind: 'ping', publicId, signal: START }
    case '/fail':
    case '/fail/':
      return { kind: 'ping', publicId, signal: FAIL }
    case '/log':
    case '/log/':
      return { kind: 'ping', publicId, signal: LOG }
  }
  if (!rest.startsWith('/')) return null
  const given = rest.endsWith('/') ? rest.slice(1, -1) : rest.slice(1)
  if (!/^[+-]?\d+$/.test(given)) return { kind: 'unknown_signal', publicId, given }
  if (!/^0*\d{1,3}$/.test(given) || Number(given) > LIMITS.exitCode)
    return { kind: 'invalid_exit_code', publicId, given }
  const exitCode = Number(given)
  return { kind: 'ping', publicId, signal: { type: exitCode === 0 ? 'success' : 'fail', exitCode } }
}

/** For the `Ping-Warning` header. The names are labels of a counter: no text of the request. */
export const PING_WARNINGS = {
  duration_invalid: `duration ignored: not an integer from 0 to ${LIMITS.durationMs}`,
  duration_unexpected: 'duration ignored: only success, fail and exit code pings carry one',
  run_id_invalid: 'rid ignored: not a UUID',
  run_refused: `no run opened: ${LIMITS.openRuns} are open already`,
  state_invalid: 'state ignored: not run, complete or fail',
  status_invalid: 'status ignored: not up or down',
  signal_overridden: 'state and status ignored: the path takes precedence',
  status_overridden: 'status ignored: state takes precedence',
  parameter_unknown: 'unknown parameters ignored: the known ones are duration, rid, state and status',
} as const
export type PingWarning = keyof typeof PING_WARNINGS

export interface PingMetadata {
  readonly signal: Signal
  readonly durationMs: number | null
  /** Lower case. */
  readonly runId: string | null
  /** What `msg` of Uptime Kuma says about a failure. */
  readonly text: string | null
  readonly warnings: readonly PingWarning[]
}

const PLAIN: PingMetadata = { signal: SUCCESS, durationMs: null, runId: null, text: null, warnings: [] }

/**
 * Never fails: invalid metadata must not lose a ping. The signal of the path takes precedence over `state` and `status`, the duration of the
 * header over that of the query.
 */
export function parsePingMetadata(
  inPath: Signal | null,
  durationHeader: string | undefined,
  query: string,
): PingMetadata {
  if (durationHeader === undefined && query === '') return inPath === null ? PLAIN : { ...PLAIN, signal: inPath }
  const parameters = readParameters(query)
  const warnings: PingWarning[] = []
  const signal = chooseSignal(inPath, parameters, warnings)

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
  return { signal, durationMs, runId, text: isKuma && signal.type === 'fail' ? parameters.msg || null : null, warnings }
}

interface Parameters {
  /** Null: not given. Given twice it is the empty text, which is invalid. */
  duration: string | null
  rid: string | null
  /** Of Cronitor. */
  state: string | null
  /** Of Uptime Kuma, as are the next two: its form is `?status=up&msg=OK&ping=`. */
  status: string | null
  msg: string | null
  ping: string | null
  hasUnknown: boolean
}

function readParameters(query: string): Parameters {
  const read: Parameters = {
    duration: null,
    rid: null,
    state: null,
    status: null,
    msg: null,
    ping: null,
    hasUnknown: false,
  }
  for (const [name, value] of new URLSearchParams(query)) {
    switch (name) {
      case 'duration':
      case 'rid':
      case 'state':
      case 'status':
      case 'msg':
      case 'ping':
        read[name] = read[name] === null ? value : ''
        break
      // Clients of healthchecks ask with it for a check to be created. This one exists.
      case 'create':
        break
      default:
        read.hasUnknown = true
    }
  }
  return read
}

const STATES: ReadonlyMap<string, Signal> = new Map([
  ['run', START],
  ['complete', SUCCESS],
  ['fail', FAIL],
])
const STATUSES: ReadonlyMap<string, Signal> = new Map([
  ['up', SUCCESS],
  ['down', FAIL],
])

function chooseSignal(inPath: Signal | null, { state, status }: Parameters, warnings: PingWarning[]): Signal {
  const byState = state === null ? undefined : STATES.get(state)
  const byStatus = status === null ? undefined : STATUSES.get(status)
  if (state !== null && byState === undefined) warnings.push('state_invalid')
  if (status !== null && byStatus === undefined) warnings.push('status_invalid')
  const differs = (signal: Signal, from: Signal | undefined) => from !== undefined && from.type !== signal.type
  if (inPath !== null) {
    if (differs(inPath, byState) || differs(inPath, byStatus)) warnings.push('signal_overridden')
    return inPath
  }
  if (byState !== undefined && differs(byState, byStatus)) warnings.push('status_overridden')
  return byState ?? byStatus ?? SUCCESS
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
