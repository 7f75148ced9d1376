/** /openapi.json, made from the table of routes and the very schemas that requests and answers pass through. */

import { z } from 'zod'
import { ERROR_CODES, type ErrorCode } from '../../domain/errors.ts'
import { STATUS } from '../middleware/errors.ts'
import { WEBHOOK_HEADERS, WebhookPayload } from './event.schema.ts'
import type { Route } from './route.ts'

type Json = Record<string, unknown>

export const SCHEMAS = '#/components/schemas/'
const RESPONSES = '#/components/responses/'

const REFUSALS = {
  invalid: 'The request is not valid: `error` names the first bad field, `details` names each.',
  unauthenticated: 'No credential, or one that is unknown, expired or revoked.',
  forbidden: 'The scope of the credential is too small; `error` names the one that is needed.',
  not_found: 'Unknown, foreign or malformed id.',
  method_not_allowed: 'The path does not know the method; `Allow` lists those that it knows.',
  conflict: 'It contradicts what is stored, for example a slug that is taken.',
  too_large: 'The body is over 65,536 bytes.',
  unsupported_media_type: 'The body is not plain UTF-8 JSON.',
  too_many_requests: 'Too many calls; `Retry-After` says when to try again.',
  internal: 'A fault of the service.',
  unavailable:
    'The service cannot reach its database, or the issuer of the token; `Retry-After` says when to try again.',
} as const satisfies Record<ErrorCode, string>

/** With codes that callers meet everywhere left to `default`: 405 is not for an operation that exists. */
const EVERYWHERE = ['internal', 'unavailable'] as const satisfies readonly ErrorCode[]

const ErrorAnswer = z
  .object({
    error: z.string().meta({ description: 'What was wrong, and what to do.' }),
    details: z
      .array(z.object({ path: z.string().meta({ description: 'For example `body.name`.' }), message: z.string() }))
      .optional()
      .meta({ description: 'Each bad field of a request that is not valid.' }),
  })
  .meta({ id: 'Error' })

const ABOUT = `Checks are monitored jobs: they are configured here, and report through the ping API.

Times are ISO 8601 in UTC with milliseconds; lengths of time are whole seconds unless a name says otherwise. Fields and
endpoints may be added at any time; none is removed or changes its meaning within /api/v1.`

/** The document without its server: that address may be known only later. */
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
      responses: Object.fromEntries(ERROR_CODES.map((code) => [code, describeRefusal(code)])),
    },
  }
}

/** What a channel of the kind webhook sends: here the reader is the server. */
function describeWebhook(): Json {
  return {
    operationId: 'receiveEvent',
    summary: 'Sent to each channel of the kind webhook that wants the event',
    description:
      'At least once, and in order for each check. Signed by the Standard Webhooks scheme with the secret that creating the channel, or rotating its secret, has shown.',
    parameters: Object.entries(WEBHOOK_HEADERS).map(([name, description]) => ({
      name,
      in: 'header',
      required: true,
      description,
      schema: { type: 'string' },
    })),
    requestBody: { required: true, content: asJson(WebhookPayload) },
    responses: {
      '2XX': { description: 'Taken. Whatever else is answered within 10 seconds, or nothing, is no success.' },
      default: {
        description:
          'Not taken: tried again for 24 hours after 408, 425, 429 and 5xx, no earlier than `Retry-After` says; given up after anything else. Redirects are not followed.',
      },
    },
  }
}

function describeOperation({ path, scope, endpoint }: Route): Json {
  const { id, summary, params, query, body, status, answer } = endpoint
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
      [status]: answer === null ? { description: 'Done.' } : { description: 'Done.', content: asJson(answer) },
      ...Object.fromEntries(
        listRefusals({ scope, endpoint }).map((code) => [STATUS[code], { $ref: RESPONSES + code }]),
      ),
    },
  }
}

/** What a caller may be told instead, lowest status first. */
export function listRefusals({ scope, endpoint }: Pick<Route, 'scope' | 'endpoint'>): ErrorCode[] {
  const codes = new Set<ErrorCode>([...(endpoint.refuses ?? []), ...EVERYWHERE])
  if (scope !== null) for (const code of ['unauthenticated', 'forbidden', 'too_many_requests'] as const) codes.add(code)
  if (endpoint.params !== undefined) codes.add('not_found')
  if (endpoint.query !== undefined) codes.add('invalid')
  if (endpoint.body !== undefined)
    for (const code of ['invalid', 'too_large', 'unsupported_media_type'] as const) codes.add(code)
  return ERROR_CODES.filter((code) => codes.has(code)).sort((one, other) => STATUS[one] - STATUS[other])
}

function describeRefusal(code: ErrorCode): Json {
  const header = (description: string, type: string) => ({ description, schema: { type } })
  const headers: Json = {}
  if (code === 'unauthenticated') headers['WWW-Authenticate'] = header('`Bearer`', 'string')
  if (code === 'method_not_allowed') headers.Allow = header('The methods that the path knows.', 'string')
  if (code === 'too_many_requests' || code === 'unavailable') headers['Retry-After'] = header('Seconds.', 'integer')
  return { description: REFUSALS[code], headers, content: asJson(ErrorAnswer) }
}

function describeParameters(place: 'path' | 'query', schema: z.ZodType | undefined): Json[] {
  if (!(schema instanceof z.ZodObject)) return []
  const { properties, required = [] } = toJsonSchema(schema) as {
    properties: Record<string, Json>
    required?: string[]
  }
  return Object.entries(properties).map(([name, { description, ...property }]) => ({
    name,
    in: place,
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
    throw new Error('a schema of a request body or an answer has no id: give it one with meta({ id })')
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
  add(ErrorAnswer)
  add(WebhookPayload)
  for (const { endpoint } of routes) for (const schema of [endpoint.body, endpoint.answer]) add(schema)
  const { schemas } = z.toJSONSchema(registry, { ...SETTINGS, uri: (id) => SCHEMAS + id })
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutHead(schema)]))
}

/** Named schemas are found wherever they are used. Of zod's kinds these are the ones that ours nest in. */
function listInner(schema: z.ZodType): unknown[] {
  if (schema instanceof z.ZodObject) return Object.values(schema.shape)
  if (schema instanceof z.ZodUnion) return [...schema.options]
  if (schema instanceof z.ZodArray) return [schema.element]
  if (schema instanceof z.ZodNullable || schema instanceof z.ZodOptional) return [schema.unwrap()]
  return []
}

/**
 * `input`: requests before transformation, and answers without `additionalProperties: false`, which would make strict
 * clients refuse the fields that we may add.
 */
const SETTINGS = { io: 'input', target: 'draft-2020-12', override: tidy } as const

/** What zod says too much (dates spelled out, the bounds of every integer of JavaScript) and too little (the default of what it transforms). */
function tidy({
  zodSchema,
  jsonSchema,
}: {
  zodSchema: z.core.$ZodType
  jsonSchema: z.core.JSONSchema.BaseSchema
}): void {
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
