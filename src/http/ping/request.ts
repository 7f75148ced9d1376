/** Parses the path, the duration and the run id of a ping request (interface, section 4.2; design, section 3.3). Pure. */

import type { PingType } from '../../domain/check.ts'
import { isUuid } from '../../domain/ids.ts'
import { LIMITS } from '../../domain/limits.ts'

export interface PingTarget {
  /** Lower case. */
  readonly publicId: string
  readonly type: PingType
  /** 0 for a success; null when the path has none. */
  readonly exitCode: number | null
}

const PREFIX = '/ping/'
const ID_END = PREFIX.length + 36

/** `/ping/<public_id>[/start|/fail|/log|/<exit code>]`, with at most one slash at the end. */
export function parsePingPath(path: string): PingTarget | 'not_found' | 'invalid_exit_code' {
  if (!path.startsWith(PREFIX)) return 'not_found'
  const publicId = path.slice(PREFIX.length, ID_END)
  if (!isUuid(publicId)) return 'not_found'
  const target = parseVerb(path.slice(ID_END))
  return typeof target === 'string' ? target : { publicId: publicId.toLowerCase(), ...target }
}

function parseVerb(rest: string): Omit<PingTarget, 'publicId'> | 'not_found' | 'invalid_exit_code' {
  switch (rest) {
    case '':
    case '/':
      return { type: 'success', exitCode: 0 }
    case '/start':
    case '/start/':
      return { type: 'start', exitCode: null }
    case '/fail':
    case '/fail/':
      return { type: 'fail', exitCode: null }
    case '/log':
    case '/log/':
      return { type: 'log', exitCode: null }
  }
  const integer = /^\/([+-]?\d+)\/?$/.exec(rest)?.[1]
  if (integer === undefined) return 'not_found'
  if (!/^0*\d{1,3}$/.test(integer) || Number(integer) > LIMITS.exitCode) return 'invalid_exit_code'
  const exitCode = Number(integer)
  return { type: exitCode === 0 ? 'success' : 'fail', exitCode }
}

/** For the `Ping-Warning` header. The names are labels of a counter: no text of the request. */
export const PING_WARNINGS = {
  duration_invalid: `duration ignored: not an integer from 0 to ${LIMITS.durationMs}`,
  duration_unexpected: 'duration ignored: only success, fail and exit code pings carry one',
  run_id_invalid: 'rid ignored: not a UUID',
  run_refused: `no run opened: ${LIMITS.openRuns} are open already`,
} as const
export type PingWarning = keyof typeof PING_WARNINGS

export interface PingMetadata {
  readonly durationMs: number | null
  /** Lower case. */
  readonly runId: string | null
  readonly warnings: readonly PingWarning[]
}

const NO_METADATA: PingMetadata = { durationMs: null, runId: null, warnings: [] }

/** Never fails: invalid metadata must not lose a ping. With the header, the duration of the query is ignored. */
export function parsePingMetadata(type: PingType, durationHeader: string | undefined, query: string): PingMetadata {
  if (durationHeader === undefined && query === '') return NO_METADATA
  const parameters = new URLSearchParams(query)
  const warnings: PingWarning[] = []

  const given = durationHeader ?? onlyValue(parameters, 'duration')
  let durationMs: number | null = null
  if (given !== null && (type === 'start' || type === 'log')) warnings.push('duration_unexpected')
  else if (given !== null) {
    durationMs = parseDuration(given)
    if (durationMs === null) warnings.push('duration_invalid')
  }

  const rid = onlyValue(parameters, 'rid')
  const runId = rid !== null && isUuid(rid) ? rid.toLowerCase() : null
  if (rid !== null && runId === null) warnings.push('run_id_invalid')
  return { durationMs, runId, warnings }
}

/** Null when there is none. Two values count as an invalid one: the empty text. */
function onlyValue(parameters: URLSearchParams, name: string): string | null {
  const values = parameters.getAll(name)
  return values.length > 1 ? '' : (values[0] ?? null)
}

function parseDuration(text: string): number | null {
  if (!/^\d{1,9}$/.test(text)) return null
  const durationMs = Number(text)
  return durationMs <= LIMITS.durationMs ? durationMs : null
}
