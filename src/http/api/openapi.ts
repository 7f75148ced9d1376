/** /openapi.json, made from the table of routes and the schemas that requests and responses pass through. */

import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../../domain/errors.ts'
import { STATUS } from '../middleware/errors.ts'
import { WEBHOOK_HEADERS, WebhookPayload } from './event.schema.ts'
import type { Route } from './route.ts'

type Json = Record<string, unknown>

export const SCHEMAS = '#/components/schemas/'
const RESPONSES = '#/components/responses/'

const ERRORS = {
  invalid: 'The request is not valid: `error` names the first invalid field, `details` lists all of them.',
  unauthenticated: 'The credential is missing, unknown, expired or revoked.',
  forbidden: 'The scope of the credential does not suffice; `error` names the scope that does.',
  not_found: 'The id is unknown, malformed, or belongs to another organization or project.',
  method_not_allowed: 'The path does not support the method; `Allow` lists the methods that it supports.',
  conflict: 'The request conflicts with stored data, for example a slug that is already in use.',
  too_large: 'The body is larger than 65,536 bytes.',
  unsupported_media_type: 'The body is not uncompressed JSON in UTF-8.',
  too_many_requests: 'Too many requests; `Retry-After` is the number of seconds to wait.',
  internal: 'An unexpected error of the service.',
  unavailable:
    'The service cannot reach its database or the issuer of the token; `Retry-After` is the number of seconds to wait.',
} as const satisfies Record<ErrorCode, string>

/** Errors that every operation can return. */
const COMMON_ERRORS = ['internal', 'unavailable'] as const satisfies readonly ErrorCode[]

const ErrorBody = z
  .object({
    error: z.string().meta({ description: 'What is wrong, and what to do.' }),
    details: z
      .array(z.object({ path: z.string().meta({ description: 'For example `body.name`.' }), message: z.string() }))
      .optional()
      .meta({ description: 'All invalid fields, when the request is not valid.' }),
  })
  .meta({ id: 'Error' })

const ABOUT = `A check monitors a job. Checks are configured here; jobs report through the ping API.

Times are ISO 8601 in UTC with milliseconds. Durations are whole seconds unless the name of the field says otherwise. Fields
and endpoints may be added at any time; within /api/v1 none is removed, and none changes its meaning.`

/** The document without its servers: their address is known only when the port is open. */
export function describeRoutes(routes: readonly Route[]): Json {
  const paths: Record<string, Json> = {}
  for (const route of routes) {
    const item = paths[route.path] ?? {}
    item[route.method.toLowerCase()] = describeOperation(route)
    paths[route.path] = item
  }
  return {
    openapi: '3.1.1',
    info: {
      title: 'Heartbeat Operator management API',
      version: '1',
      description: ABOUT,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    paths,
    webhooks: { event: { post: describeWebhook() } },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key (`hbk_...`), the access token of a log-in, or a token of a configured OpenID Connect issuer.',
        },
      },
      schemas: describeSchemas(routes),
      responses: Object.fromEntries(ERROR_CODES.map((code) => [code, describeError(code)])),
    },
  }
}

/** The request that a channel of the kind webhook sends to a receiver. */
function describeWebhook(): Json {
  return {
    operationId: 'receiveEvent',
    summary: 'Sent to each webhook channel that subscribes to the event',
    description:
      'Each event is delivered at least once, and the events of one check arrive in order. The request is signed according to Standard Webhooks, with the secret that the API returned when the channel was created or its secret was rotated.',
    parameters: Object.entries(WEBHOOK_HEADERS).map(([name, description]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    requestBody: { required: true, content: asJson(WebhookPayload) },
    responses: {
      '2XX': {
        description: 'The event is delivered. Any other response, or none within 10 seconds, counts as a failure.',
      },
      default: {
        description:
          'The event is not delivered. After 408, 425, 429, 5xx or no response it is sent again for up to 24 hours, not before the time in `Retry-After`. After any other response it is not sent again. Redirects are not followed.',
      },
    },
  }
}

function describeOperation({ path, scope, endpoint }: Route): Json {
  const { id, summary, params, query, body, status, response } = endpoint
  return {
    operationId: id,
    summary,
    tags: [path.split('/')[1]!.replace('.json', '')],
    ...(scope === null
      ? { security: [] }
      : { security: [{ bearer: [] }], description: `Needs the scope \`${scope}\`.` }),
    parameters: [...describeParameters('path', params), ...describeParameters('query', query)],
    ...(body === undefined ? {} : { requestBody: { required: true, content: asJson(body) } }),
    responses: {
      [status]: response === null ? { description: 'Done.' } : { description: 'Done.', content: asJson(response) },
      ...Object.fromEntries(listErrors({ scope, endpoint }).map((code) => [STATUS[code], { $ref: RESPONSES + code }])),
    },
  }
}

/** The errors that the operation can return, lowest status first. */
export function listErrors({ scope, endpoint }: Pick<Route, 'scope' | 'endpoint'>): ErrorCode[] {
  const codes = new Set<ErrorCode>([...(endpoint.errors ?? []), ...COMMON_ERRORS])
  if (scope !== null) for (const code of ['unauthenticated', 'forbidden', 'too_many_requests'] as const) codes.add(code)
  if (endpoint.params !== undefined) codes.add('not_found')
  if (endpoint.query !== undefined) codes.add('invalid')
  if (endpoint.body !== undefined)
    for (const code of ['invalid', 'too_large', 'unsupported_media_type'] as const) codes.add(code)
  return ERROR_CODES.filter((code) => codes.has(code)).sort((one, other) => STATUS[one] - STATUS[other])
}

function describeError(code: ErrorCode): Json {
  const header = (description: string, type: string) => ({ description, schema: { type } })
  const headers: Json = {}
  if (code === 'unauthenticated') headers['WWW-Authenticate'] = header('`Bearer`', 'string')
  if (code === 'method_not_allowed') headers.Allow = header('The methods that the path supports.', 'string')
  if (code === 'too_many_requests' || code === 'unavailable')
    headers['Retry-After'] = header('Seconds to wait.', 'integer')
  return { description: ERRORS[code], headers, content: asJson(ErrorBody) }
}

function describeParameters(location: 'path' | 'query', schema: z.ZodType | undefined): Json[] {
  if (!(schema instanceof z.ZodObject)) return []
  type ObjectSchema = { properties: Record<string, Json>; required?: string[] }
  const { properties, required = [] } = toJsonSchema(schema) as ObjectSchema
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: location,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: property,
  }))
}

function asJson(schema: z.ZodType): Json {
  return { 'application/json': { schema: { $ref: SCHEMAS + idOf(schema) } } }
}

function idOf(schema: z.ZodType): string {
  const id = schema.meta()?.id
  if (id === undefined)
    throw new Error('a schema of a request body or a response has no id: give it one with meta({ id })')
  return id
}

function describeSchemas(routes: readonly Route[]): Json {
  const registry = z.registry<{ id: string }>()
  const add = (schema: unknown): void => {
    if (!(schema instanceof z.ZodType) || registry.has(schema)) return
    const id = schema.meta()?.id
    if (id !== undefined) registry.add(schema, { id })
    for (const inner of listInner(schema)) add(inner)
  }
  add(ErrorBody)
  add(WebhookPayload)
  for (const { endpoint } of routes) for (const schema of [endpoint.body, endpoint.response]) add(schema)
  const { schemas } = z.toJSONSchema(registry, { ...SETTINGS, uri: (id) => SCHEMAS + id })
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutHead(schema)]))
}

/** The schemas directly inside a schema. These are the kinds of zod in which our schemas nest. */
function listInner(schema: z.ZodType): unknown[] {
  if (schema instanceof z.ZodObject) return Object.values(schema.shape)
  if (schema instanceof z.ZodUnion) return [...schema.options]
  if (schema instanceof z.ZodArray) return [schema.element]
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return [schema.unwrap()]
  return []
}

/** `input`: requests before transformation; responses without `additionalProperties: false`, so that strict clients accept fields added later. */
const SETTINGS = { io: 'input', target: 'draft-2020-12', override: tidy } as const

/** Removes what zod adds (patterns of dates, bounds of JavaScript's integers) and adds what it omits (defaults of transformed fields). */
function tidy(made: { zodSchema: z.core.$ZodType; jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  const { zodSchema, jsonSchema } = made
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  const standard = z.globalRegistry.get(zodSchema)?.default
  if (standard !== undefined) jsonSchema.default = standard as number
}

function toJsonSchema(schema: z.ZodType): Json {
  return withoutHead(z.toJSONSchema(schema, SETTINGS))
}

function withoutHead({ $schema: _schema, $id: _id, id: _name, ...schema }: Json): Json {
  return schema
}
