/**
 * A client of the management API that knows its document: each answer that a test receives must be one that the document
 * promises, status, fields and all. A document that lies fails the tests of the routes.
 */

import { z } from 'zod'

export interface Answer {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any
}

export interface CallOptions {
  /** API key or access token; null: none. */
  readonly key?: string | null
  /** Sent as JSON. */
  readonly json?: unknown
  /** Sent as it is. */
  readonly body?: string | Uint8Array
  readonly headers?: Record<string, string>
}

export interface ApiClient {
  call(method: string, path: string, options?: CallOptions): Promise<Answer>
  get(path: string, options?: CallOptions): Promise<Answer>
  post(path: string, json?: unknown, options?: CallOptions): Promise<Answer>
  put(path: string, json: unknown, options?: CallOptions): Promise<Answer>
  patch(path: string, json?: unknown, options?: CallOptions): Promise<Answer>
  delete(path: string, options?: CallOptions): Promise<Answer>
}

export async function createApiClient(url: string, defaultKey: string): Promise<ApiClient> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApi
  const assertPromised = createPromises(document)

  async function call(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { key = defaultKey, json, body = json === undefined ? undefined : JSON.stringify(json) } = options
    const headers = {
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...(json === undefined ? {} : { 'content-type': 'application/json' }),
      ...options.headers,
    }
    const response = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body }) })
    const text = await response.text()
    const isPlain = response.headers.get('content-type')?.startsWith('text/plain') ?? false
    const parsed = text === '' ? null : isPlain ? text : JSON.parse(text)
    const answer = { status: response.status, headers: response.headers, body: parsed }
    assertPromised(method, path, answer)
    return answer
  }

  return {
    call,
    get: (path, options) => call('GET', path, options),
    post: (path, json, options) => call('POST', path, { ...options, json }),
    put: (path, json, options) => call('PUT', path, { ...options, json }),
    patch: (path, json, options) => call('PATCH', path, { ...options, json }),
    delete: (path, options) => call('DELETE', path, options),
  }
}

export type Json = Record<string, unknown>
interface Response {
  readonly $ref?: string
  readonly content?: Partial<Record<'application/json' | 'text/plain', { schema: Json }>>
}
export interface OpenApi {
  readonly paths: Record<string, Record<string, { responses: Record<string, Response> }>>
  readonly components: { readonly schemas: Record<string, Json>; readonly responses: Record<string, Response> }
}

/** Throws when an answer of a path and method that the document has is not among those it promises. */
export function createPromises(document: OpenApi): (method: string, path: string, answer: Answer) => void {
  const operations = Object.entries(document.paths).map(([path, item]) => ({
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    item,
  }))
  return (method, path, { status, body }) => {
    const item = operations.find(({ pattern }) => pattern.test(path.split('?')[0]!))?.item
    const operation = item?.[method === 'HEAD' ? 'get' : method.toLowerCase()]
    if (operation === undefined) return
    const given = operation.responses[status]
    if (given === undefined) throw new Error(`${method} ${path} answered ${status}, which the document does not know`)
    const promised = given.$ref === undefined ? given : (lookUp(document, given.$ref) as Response)
    const media = promised.content?.['application/json'] ?? promised.content?.['text/plain']
    const schema = media?.schema
    if (schema === undefined || method === 'HEAD') {
      if (body !== null)
        throw new Error(`${method} ${path} answered ${status} with a body, which the document does not know`)
      return
    }
    const result = readSchema(document, schema).safeParse(body)
    if (!result.success)
      throw new Error(
        `${method} ${path} answered ${status} with another body than the document says: ${result.error.message}`,
      )
  }
}

/** A schema of the document as a validator that rejects fields that the document does not have. */
export function readSchema(document: OpenApi, schema: Json): z.ZodType {
  return z.fromJSONSchema(closed(inline(document, schema)))
}

function lookUp(document: OpenApi, ref: string): unknown {
  const found = ref
    .slice(2)
    .split('/')
    .reduce<unknown>((place, name) => (place as Json | undefined)?.[name], document)
  if (found === undefined) throw new Error(`${ref} leads nowhere`)
  return found
}

/** Keywords that zod does not read. */
const UNREAD = ['not', 'discriminator', 'dependentRequired']

/** RFC 9562, section 4: a UUID of any version. zod knows versions 1 to 8 only, and a job chooses its run id. */
const UUID = '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'

/** The schema with what it refers to put in place; ours have no cycles. */
function inline(document: OpenApi, schema: unknown): Json {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== 'object' || value === null) return value
    if ('$ref' in value) return visit(lookUp(document, value.$ref as string))
    const fields = Object.entries(value).filter(([name]) => !UNREAD.includes(name))
    const read = Object.fromEntries(fields.map(([name, inner]) => [name, visit(inner)]))
    if (read.format !== 'uuid') return read
    const { format, ...others } = read
    return { ...others, pattern: UUID }
  }
  return visit(schema) as Json
}

/** The document lets answers grow; what they hold today must all be in it. */
function closed(schema: Json): Json {
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit)
    if (typeof value !== 'object' || value === null) return value
    const inner: Json = Object.fromEntries(Object.entries(value).map(([name, part]) => [name, visit(part)]))
    return inner.type === 'object' && 'properties' in inner && !('additionalProperties' in inner)
      ? { ...inner, additionalProperties: false }
      : inner
  }
  return visit(schema) as Json
}
