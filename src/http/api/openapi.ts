/** /openapi.json, made from the table of routes and the schemas that requests and responses pass through. */

import { z } from 'zod'
import { ERROR_CODES, type ErrorCode, isConflict } from '../../domain/errors.ts'
import { MEANINGS, STATUS } from '../error-codes.ts'
import { ERROR_EXAMPLES, type ErrorExample, type ResponseName } from './error-examples.ts'
import { WEBHOOK_HEADERS, WebhookPayload } from './event.schema.ts'
import * as examples from './examples.ts'
import { describePings, PING_TAG } from './openapi-pings.ts'
import { describeObject, describeSchemas, type Json, refTo } from './openapi-schemas.ts'
import { PlainText, type Route, statusOf } from './route.ts'

const RESPONSES = '#/components/responses/'
const HEADERS = '#/components/headers/'

const COMMON_ERRORS = ['internal', 'unavailable'] as const satisfies readonly ErrorCode[]

/** Errors that come before the call is counted, or after which its count is unknown. */
const UNCOUNTED: readonly ErrorCode[] = ['unauthenticated', 'internal', 'unavailable']

/** IETF draft "RateLimit header fields", version 06. */
const RATE_LIMIT_HEADERS = {
  'RateLimit-Limit': 'Calls that the organization may make in a minute.',
  'RateLimit-Remaining': 'Calls that this caller may still make now.',
  'RateLimit-Reset': 'Seconds until calls are available again.',
} as const

/** The first part of a path is the tag of its operations. */
const TAGS = {
  checks: 'What is monitored: configuration, status and history of each job.',
  channels: 'Where events are sent.',
  deliveries: 'The state of each event for each channel.',
  silences: 'Times in which no channel is notified of some checks.',
  projects: 'What checks belong to.',
  'api-keys': 'Credentials for programs.',
  users: 'People who log in.',
  me: 'The caller.',
  auth: 'Log-in and log-out, for browsers and command lines.',
  audit: 'Who changed what, and when.',
  openapi: 'This document.',
  ...PING_TAG,
}

const ErrorBody = z
  .object({
    error: z.string().meta({ description: 'What is wrong, and what to do.' }),
    code: z.enum(ERROR_CODES).meta({ description: 'What is wrong, for programs. Later versions may have more codes.' }),
    details: z
      .array(z.object({ path: z.string().meta({ description: 'For example `body.name`.' }), message: z.string() }))
      .optional()
      .meta({
        description: 'All faults of a request that is not valid, and the field of a conflict that concerns one.',
      }),
  })
  .meta({ id: 'Error' })

const ABOUT = `A check monitors a job. Checks are configured through the management API; jobs report through the ping API, which has
its own address (the \`servers\` of its paths) and needs no credential.

Times are ISO 8601 in UTC with milliseconds. Durations are whole seconds unless the name of the field says otherwise. Fields
and endpoints may be added at any time; within /api/v1 none is removed, and none changes its meaning.`

/** The document without its servers: their addresses are known only when the ports are open. */
export function describeRoutes(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const item = paths[route.path] ?? {}
    item[route.method.toLowerCase()] = describeOperation(route)
    paths[route.path] = item
  }
  Object.assign(paths, describePings())
  return {
    openapi: '3.1.1',
    info: {
      title: 'Heartbeat Operator',
      version: '1',
      description: ABOUT,
      contact: {
        name: 'Heartbeat Operator',
        url: 'https://github.com/heartbeat-operator/heartbeat-operator',
      },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    paths,
    webhooks: { event: { post: describeWebhook('receiveEvent') } },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key (`hbk_...`), the access token of a log-in, or a token of a configured OpenID Connect issuer.',
        },
      },
      schemas: describeSchemas(),
      headers: Object.fromEntries(
        Object.entries(RATE_LIMIT_HEADERS).map(([name, description]) => [
          name,
          { description, schema: { type: 'integer' } },
        ]),
      ),
      responses: Object.fromEntries(listAllResponses(routes).map((name) => [name, describeError(name)])),
    },
  }
}

/** The document of a service that listens. Each path of the ping API has its own server. */
export function withServers(document: Json, { baseUrl, pingUrl }: { baseUrl: string; pingUrl: string }): Json {
  const paths = Object.entries(document.paths as Record<string, Json>).map(([path, item]) => [
    path,
    path.startsWith('/ping/') ? { servers: [{ url: pingUrl, description: 'The ping API.' }], ...item } : item,
  ])
  return { ...document, servers: [{ url: baseUrl }], paths: Object.fromEntries(paths) }
}

/** The request that a channel of the kind webhook sends to a receiver. */
function describeWebhook(operationId: string): Json {
  return {
    operationId,
    summary: 'Sent to each webhook channel that subscribes to the event',
    description:
      'Each event is delivered at least once, and the events of one check arrive in order. The request is signed according to Standard Webhooks, with the secret that the API returned when the channel was created or its secret was rotated.',
    tags: ['channels'],
    security: [],
    parameters: Object.entries(WEBHOOK_HEADERS).map(([name, description]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
      example: examples.WEBHOOK_HEADER_EXAMPLES[name as keyof typeof WEBHOOK_HEADERS],
    })),
    requestBody: { required: true, content: asJson(WebhookPayload, examples.WEBHOOK_EXAMPLE) },
    responses: {
      '2XX': {
        description: 'The event is delivered. Any other response, or none within 10 seconds, counts as a failure.',
      },
      '4XX': {
        description:
          'The event is not delivered. It is sent again after 408, 425 and 429 only, as after an error of the receiver.',
      },
      default: {
        description:
          'The event is not delivered. After 5xx or no response it is sent again for up to 24 hours, not before the time in `Retry-After`. After a redirect it is not sent again: redirects are not followed.',
      },
    },
  }
}

/** Channels of the kind webhook have a URL. Beside `webhooks`, so that generators that read only paths keep the schemas of events. */
const CALLBACK_URL = '{$request.body#/config/url}'

function describeOperation({ id, path, scope, endpoint, sameAs }: Route): Json {
  const { summary, params, query, body, response } = endpoint
  const example = examples.EXAMPLES[sameAs ?? id]
  const headers = scope === null ? {} : { headers: RATE_LIMIT_REFS }
  return {
    operationId: id,
    summary,
    description: describeNeeds(scope, endpoint),
    tags: [path.split('/')[1]!.replace('.json', '')],
    security: scope === null ? [] : [{ bearer: [] }],
    parameters: [...describeParameters('path', params), ...describeParameters('query', query)],
    ...(body === undefined
      ? {}
      : { requestBody: { required: endpoint.isBodyOptional !== true, content: asJson(body, example?.body) } }),
    responses: {
      ...describeSuccess(statusOf(endpoint), response, example?.response, headers),
      ...Object.fromEntries(
        listErrors({ scope, endpoint }).map((code) => [STATUS[code], { $ref: RESPONSES + responseOf(code) }]),
      ),
    },
    ...(id === 'createChannel'
      ? { callbacks: { event: { [CALLBACK_URL]: { post: describeWebhook('receiveEventOfChannel') } } } }
      : {}),
  }
}

/** The scope, and which conflicts there are: they share a status. */
function describeNeeds(scope: Route['scope'], { errors = [] }: Route['endpoint']): string {
  const needs = scope === null ? 'Needs no credential.' : `Needs the scope \`${scope}\`.`
  const conflicts = errors.filter(isConflict).map((code) => `\`${code}\``)
  return conflicts.length === 0 ? needs : `${needs} Codes of 409: ${conflicts.join(', ')}.`
}

function describeSuccess(status: number, response: z.ZodType | undefined, example: unknown, headers: Json): Json {
  if (response === undefined) return { [status]: { description: 'Done.', ...headers } }
  if (response !== PlainText)
    return { [status]: { description: 'Done.', ...headers, content: asJson(response, example) } }
  const content = { 'text/plain': { schema: { type: 'string' }, example } }
  return {
    [status]: { description: 'The text.', ...headers, content },
    204: { description: 'There is no text.', ...headers },
  }
}

/** The errors that the operation can return, lowest status first. */
export function listErrors({ scope, endpoint }: Pick<Route, 'scope' | 'endpoint'>): ErrorCode[] {
  const codes = new Set<ErrorCode>([...(endpoint.errors ?? []), ...COMMON_ERRORS])
  if (scope !== null) for (const code of ['unauthenticated', 'forbidden', 'too_many_requests'] as const) codes.add(code)
  if (endpoint.params !== undefined) codes.add('not_found')
  if (endpoint.query !== undefined) codes.add('invalid_request')
  if (endpoint.body !== undefined)
    for (const code of ['invalid_request', 'too_large', 'unsupported_media_type'] as const) codes.add(code)
  return ERROR_CODES.filter((code) => codes.has(code)).sort((one, other) => STATUS[one] - STATUS[other])
}

/** Those that at least one operation refers to: 405, for one, belongs to none, as it is the response to methods that are none. */
function listAllResponses(routes: readonly Route[]): ResponseName[] {
  const used = new Set(routes.flatMap(listErrors).map(responseOf))
  return ERROR_CODES.map(responseOf).filter((name, index, all) => used.has(name) && all.indexOf(name) === index)
}

const responseOf = (code: ErrorCode): ResponseName => (isConflict(code) ? 'conflict' : code)
const CONFLICT = 'The present state does not allow the change: `code` and `error` say why.'

const RATE_LIMIT_REFS = Object.fromEntries(
  Object.keys(RATE_LIMIT_HEADERS).map((name) => [name, { $ref: HEADERS + name }]),
)

function describeError(code: ResponseName): Json {
  const header = (description: string, type: string) => ({ description, schema: { type } })
  const headers: Json = UNCOUNTED.includes(code) ? {} : { ...RATE_LIMIT_REFS }
  if (code === 'unauthenticated') headers['WWW-Authenticate'] = header('`Bearer`', 'string')
  if (code === 'too_many_requests' || code === 'unavailable')
    headers['Retry-After'] = header('Seconds to wait.', 'integer')
  const { cause, cure } = MEANINGS[code]
  const description = code === 'conflict' ? CONFLICT : `${cause} ${cure}`
  return { description, headers, content: asJson(ErrorBody, exampleOf(code)) }
}

function exampleOf(name: ResponseName): Json {
  const { error, code = name, details }: ErrorExample = ERROR_EXAMPLES[name]
  return { error, code, ...(details === undefined ? {} : { details }) }
}

function describeParameters(location: 'path' | 'query', schema: z.ZodType | undefined): Json[] {
  if (!(schema instanceof z.ZodObject)) return []
  const { properties, required = [] } = describeObject(schema)
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: location,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
    ...(property.format === 'uuid' ? { example: examples.EXAMPLE_ID } : {}),
  }))
}

function asJson(schema: z.ZodType, example: unknown): Json {
  return { 'application/json': { schema: refTo(schema), ...(example === undefined ? {} : { example }) } }
}
