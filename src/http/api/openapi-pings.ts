/** The ping API in /openapi.json (interface, section 4.2; design, section 3.3). It has no table of routes: http/ping/request.ts parses its paths. */

import { z } from 'zod'
import { LIMITS } from '../../domain/limits.ts'
import { EXAMPLE_ID } from './examples.ts'
import { type Json, refTo } from './openapi-schemas.ts'

const TAG = 'pings'
export const PING_TAG = {
  [TAG]:
    'How jobs report. Without credential and rate limit; 200 means that the ping is stored; 413 and 415 mean that it is stored without all of its text.',
}

const PingError = z
  .object({ error: z.string().meta({ description: 'What is wrong, and what to do.' }) })
  .meta({ id: 'PingError' })

interface Signal {
  /** Behind `/ping/{public_id}`. */
  readonly path: string
  /** Ends the ids of its two operations. */
  readonly id: string
  readonly summary: string
  readonly about: string
  /** Whether it ends a run: then it can carry the duration. */
  readonly isCompletion: boolean
  readonly parameters?: readonly Json[]
  /** Errors of this signal alone. */
  readonly errors?: Readonly<Record<string, Json>>
}

const BODY = `A longer body than ${LIMITS.pingBodyBytes} bytes, a compressed one, or metadata that cannot be used never loses the signal.`

const header = (description: string, schema: Json, example: unknown) => ({ description, schema, example })

const parameter = (name: string, place: 'path' | 'query' | 'header', ...about: Parameters<typeof header>) => ({
  name,
  in: place,
  required: place === 'path',
  ...header(...about),
})

const DURATION = { type: 'integer', minimum: 0, maximum: LIMITS.durationMs }
const COMPLETION_PARAMETERS = [
  parameter(
    'X-Service-Duration',
    'header',
    "Milliseconds that the run took, by the job's own measurement. Default: the time since the matching start.",
    DURATION,
    93_500,
  ),
  parameter('duration', 'query', 'The same as `X-Service-Duration`, which takes precedence.', DURATION, 93_500),
]

const RUN_ID = parameter(
  'rid',
  'query',
  'Id of the run: it distinguishes overlapping runs, and the same signal of the same run counts once.',
  { type: 'string', format: 'uuid' },
  '4a3e8a2c-6c64-4b5d-9d8a-0d4c3b8f7e11',
)

const PUBLIC_ID = parameter(
  'public_id',
  'path',
  'The `public_id` of the check: the right to ping, so keep it secret.',
  { type: 'string', format: 'uuid' },
  EXAMPLE_ID,
)

const SIGNALS: readonly Signal[] = [
  {
    path: '',
    id: 'Success',
    summary: 'The job succeeded',
    about: 'Also a start or a failure, if `state` or `status` says so.',
    isCompletion: true,
    parameters: [
      parameter(
        'state',
        'query',
        'As jobs of Cronitor send it: `run` is a start, `complete` a success, `fail` a failure. `warn` is a warning.',
        { type: 'string', enum: ['run', 'complete', 'warn', 'fail'] },
        'complete',
      ),
      parameter(
        'status',
        'query',
        'As jobs of Uptime Kuma send it: `up` is a success, `down` a failure.',
        { type: 'string', enum: ['up', 'down'] },
        'up',
      ),
    ],
  },
  {
    path: '/start',
    id: 'Start',
    summary: 'The job started',
    about: 'With `max_runtime_seconds` a run that takes longer makes the check go down.',
    isCompletion: false,
  },
  {
    path: '/fail',
    id: 'Fail',
    summary: 'The job failed',
    about: 'The check goes down at once.',
    isCompletion: true,
  },
  {
    path: '/warn',
    id: 'Warn',
    summary: 'The job is done, and a person should look at it',
    about: 'As a success, with the event `check.warned`: one in 24 hours while warnings continue.',
    isCompletion: true,
  },
  {
    path: '/log',
    id: 'Log',
    summary: 'Store a text',
    about: 'Nothing else changes.',
    isCompletion: false,
  },
  {
    path: '/{exit_code}',
    id: 'ExitCode',
    summary: 'The job ended with this exit code',
    about: 'Zero is a success, one of `warn_exit_codes` of the check a warning, anything else a failure.',
    isCompletion: true,
    parameters: [
      parameter(
        'exit_code',
        'path',
        'Exit code of the job.',
        { type: 'integer', minimum: 0, maximum: LIMITS.exitCode },
        3,
      ),
    ],
    errors: {
      400: describeRejection(
        `The exit code is not from 0 to ${LIMITS.exitCode}.`,
        `invalid exit code 256: 0 to ${LIMITS.exitCode}`,
      ),
    },
  },
]

/** The paths, without their servers. HEAD does what GET does; OPTIONS is for browsers. */
export function describePings(): Record<string, Json> {
  return Object.fromEntries(SIGNALS.map((signal) => [`/ping/{public_id}${signal.path}`, describeSignal(signal)]))
}

function describeSignal({ id, summary, about, isCompletion, parameters = [], errors = {} }: Signal): Json {
  const operation = (method: 'ping' | 'post', description: string) => ({
    operationId: `${method}${id}`,
    summary: method === 'ping' ? summary : `${summary}, with a text`,
    description,
    tags: [TAG],
    security: [],
    parameters: [PUBLIC_ID, ...parameters, RUN_ID, ...(isCompletion ? COMPLETION_PARAMETERS : [])],
  })
  return {
    get: {
      ...operation('ping', `${about} HEAD does the same.`),
      responses: { 200: ACCEPTED, ...errors, ...ERRORS },
    },
    post: {
      ...operation('post', `${about} ${BODY}`),
      requestBody: {
        required: false,
        description: `Text, such as the end of the job's output: at most ${LIMITS.pingBodyBytes} bytes of any content type. Notifications contain its end.`,
        content: { 'text/plain': { schema: { type: 'string' }, example: 'dump: connection refused\n' } },
      },
      responses: { 200: ACCEPTED, ...errors, ...ERRORS, ...BODY_ERRORS },
    },
  }
}

function headersOf(extra: Json = {}): Json {
  const limit = header('The largest body in bytes that is stored whole.', { type: 'integer' }, LIMITS.pingBodyBytes)
  return { 'Ping-Body-Limit': limit, ...extra }
}

const ACCEPTED = {
  description: 'The ping is stored.',
  headers: headersOf({
    'Ping-Warning': header(
      'What of the metadata was dropped, and why. The ping counts.',
      { type: 'string' },
      `duration ignored: not an integer from 0 to ${LIMITS.durationMs}`,
    ),
    'Ping-Stored': header(
      '`spool`: on disk, while the database is unavailable. The ping is recorded with the time of its arrival.',
      { type: 'string', const: 'spool' },
      'spool',
    ),
  }),
  content: { 'text/plain': { schema: { type: 'string', const: 'OK' }, example: 'OK' } },
}

/** Plain text; JSON for clients that accept JSON rather than text. */
function describeRejection(description: string, example: string, extra: Json = {}): Json {
  return {
    description,
    headers: headersOf(extra),
    content: {
      'text/plain': { schema: { type: 'string' }, example },
      'application/json': { schema: refTo(PingError), example: { error: example } },
    },
  }
}

const ERRORS = {
  404: describeRejection(
    'No check has this public id, or the check exists and the signal is unknown.',
    'no such check',
  ),
  503: describeRejection(
    'The ping could not be stored, or was recorded without its body because too many bodies are being read.',
    'the ping could not be stored; try again',
    { 'Retry-After': header('Seconds to wait.', { type: 'integer' }, 5) },
  ),
}

const BODY_ERRORS = {
  413: describeRejection(
    'The body is too large. The ping was recorded with its last part, or without it when the body is larger than 1 MB.',
    `body too large: ${LIMITS.pingBodyBytes} bytes at most; the ping was recorded with the last ${LIMITS.pingBodyBytes}`,
  ),
  415: describeRejection(
    'The body is compressed. The ping was recorded without it.',
    'compressed bodies are not supported; the ping was recorded without it',
  ),
}
