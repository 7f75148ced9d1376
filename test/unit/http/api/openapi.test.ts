import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { CHANNEL_KINDS } from '../../../../src/domain/channel.ts'
import { encodeCursor } from '../../../../src/domain/page.ts'
import { describeRoutes } from '../../../../src/http/api/openapi.ts'
import { statusOf } from '../../../../src/http/api/route.ts'
import { ROUTES } from '../../../../src/http/api/routes.ts'
import { createPromises, type OpenApi, readSchema } from '../../../support/api-client.ts'

type Json = Record<string, unknown>
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly security: readonly Json[]
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: Json; description?: string }[]
  readonly requestBody?: Json
  readonly responses: Record<string, Json>
  readonly description: string
  readonly tags: readonly string[]
}

// As it is sent.
const document = JSON.parse(JSON.stringify(describeRoutes(ROUTES))) as Json & {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  webhooks: { event: { post: Operation } }
  tags: readonly { name: string; description?: string }[]
  components: {
    schemas: Record<string, Json>
    responses: Record<string, Json>
    headers: Record<string, Json>
    securitySchemes: Json
  }
}
const operations = Object.values(document.paths).flatMap((item) => Object.values(item))

/** Each object of the document with its place, parents first. */
function* walk(value: unknown, place: string): Generator<[string, Json]> {
  if (typeof value !== 'object' || value === null) return
  if (!Array.isArray(value)) yield [place, value as Json]
  for (const [name, inner] of Object.entries(value)) yield* walk(inner, `${place}/${name}`)
}
const places = [...walk(document, '#')]

describe('the document', () => {
  it('holds every route, and nothing else', () => {
    const listed = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const ofPings = listed.filter((operation) => operation.includes(' /ping/'))
    expect(ofPings).toHaveLength(12)
    expect(listed.filter((operation) => !ofPings.includes(operation)).sort()).toEqual(
      ROUTES.map(({ method, path }) => `${method} ${path}`).sort(),
    )
  })

  it('gives every operation an id of its own and a summary', () => {
    const ids = operations.map(({ operationId }) => operationId)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { operationId, summary } of operations) {
      expect(operationId).toMatch(/^[a-z][A-Za-z]+$/)
      expect(summary).toMatch(/^[A-Z]/)
    }
  })

  it.each(ROUTES)('says of $method $path what it asks for and how it refuses', ({ method, path, scope, endpoint }) => {
    const operation = document.paths[path]![method.toLowerCase()]!
    expect(operation.security).toEqual(scope === null ? [] : [{ bearer: [] }])
    const inPath = operation.parameters
      .filter((parameter) => parameter.in === 'path')
      .map(({ name, required }) => [name, required])
    expect(inPath).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name, true]))
    expect(operation.requestBody !== undefined).toBe(endpoint.body !== undefined)
    const statuses = Object.keys(operation.responses).map(Number)
    expect(statuses).toContain(statusOf(endpoint))
    expect(statuses).toEqual(expect.arrayContaining([500, 503]))
    if (scope !== null) expect(statuses).toEqual(expect.arrayContaining([401, 403, 429]))
    if (endpoint.body !== undefined) expect(statuses).toEqual(expect.arrayContaining([400, 413, 415]))
    if (inPath.length > 0) expect(statuses).toContain(404)
    expect((statusOf(endpoint) === 204) === (endpoint.response === undefined)).toBe(true)
  })

  it('refers only to what it holds, and holds only what it refers to', () => {
    const refs = new Set(places.flatMap(([, { $ref }]) => ($ref === undefined ? [] : [$ref as string])))
    for (const [, { discriminator }] of places) {
      const { mapping = {} } = (discriminator ?? {}) as { mapping?: Record<string, string> }
      for (const ref of Object.values(mapping)) expect(refs).toContain(ref)
    }
    const held = (['schemas', 'responses', 'headers'] as const).flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
    )
    expect([...refs].sort()).toEqual(held.sort())
  })

  it('is plain JSON Schema: no leftovers of the library', () => {
    for (const [place, object] of places) {
      for (const name of ['$schema', '$id', '$defs']) expect(object, place).not.toHaveProperty(name)
      expect(object.minimum, place).not.toBe(Number.MIN_SAFE_INTEGER)
      expect(object.maximum, place).not.toBe(Number.MAX_SAFE_INTEGER)
    }
    for (const schema of Object.values(document.components.schemas)) expect(schema).not.toHaveProperty('id')
  })

  /** The names of the schemas in `value`, with those inside of them. */
  function listSchemas(value: unknown, found = new Set<string>()): Set<string> {
    for (const [, { $ref }] of walk(value, '')) {
      const name = ($ref as string | undefined)?.split('/schemas/')[1]
      if (name === undefined || found.has(name)) continue
      found.add(name)
      listSchemas(document.components.schemas[name], found)
    }
    return found
  }

  it('rejects unknown fields in requests, and leaves responses room to grow', () => {
    const requests = listSchemas(operations.map(({ requestBody }) => requestBody))
    expect(requests.size).toBeGreaterThan(5)
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      if (requests.has(name) && schema.type === 'object') expect(schema.additionalProperties, name).toBe(false)
      else expect(schema.additionalProperties, name).not.toBe(false)
    }
  })

  it('refers from its paths to each schema, also of events: generators drop those of webhooks alone', () => {
    const paths = [...walk(document.paths, '#')].flatMap(([, { $ref }]) => ($ref as string | undefined) ?? [])
    const inResponses = [...new Set(paths)].map((ref) => {
      const [kind, name] = ref.split('/').slice(2) as ['schemas' | 'responses' | 'headers', string]
      return kind === 'schemas' ? { $ref: ref } : document.components[kind][name]
    })
    expect([...listSchemas(inResponses)].sort()).toEqual(Object.keys(document.components.schemas).sort())
  })

  it('has no default in a body: generators make such a field required', () => {
    const withDefault = [...walk(document.components.schemas, '#')].filter(([, schema]) => 'default' in schema)
    expect(withDefault.map(([place]) => place)).toEqual([])
    const described = (name: string, field: string) =>
      (document.components.schemas[name]!.properties as Record<string, Json>)[field]!.description
    expect(described('NewCheck', 'grace_seconds')).toMatch(/ Default: 3600\.$/)
    expect(described('NewWebhookChannel', 'muted')).toMatch(/ Default: false\.$/)
  })

  it.each(['NewChannel', 'Channel', 'CreatedChannel'])(
    '%s is a union by kind, and each kind has its own config',
    (name) => {
      const { oneOf, discriminator } = document.components.schemas[name] as {
        oneOf: { $ref: string }[]
        discriminator: { propertyName: string; mapping: Record<string, string> }
      }
      expect(discriminator.propertyName).toBe('kind')
      expect(Object.keys(discriminator.mapping).sort()).toEqual([...CHANNEL_KINDS].sort())
      expect(Object.values(discriminator.mapping)).toEqual(oneOf.map(({ $ref }) => $ref))
      const configs = Object.entries(discriminator.mapping).map(([kind, ref]) => {
        const { properties, required } = document.components.schemas[ref.split('/').at(-1)!] as {
          properties: Record<string, Json>
          required: string[]
        }
        expect(properties.kind).toMatchObject({ const: kind })
        expect(required).toEqual(expect.arrayContaining(['kind', 'config']))
        return [...listSchemas(properties.config)].join()
      })
      expect(new Set(configs).size).toBe(CHANNEL_KINDS.length)
    },
  )

  it('describes each tag that an operation has, and no other', () => {
    const used = new Set(operations.flatMap(({ tags }) => tags))
    expect(document.tags.map(({ name }) => name).sort()).toEqual([...used].sort())
    const undescribed = document.tags.filter(({ description }) => description === undefined).map(({ name }) => name)
    expect(undescribed, 'describe these tags in TAGS of src/http/api/openapi.ts').toEqual([])
  })

  it('says that a webhook has no credential of ours', () => {
    expect(document.webhooks.event.post.security).toEqual([])
    for (const { operationId, description } of operations) expect(description, operationId).toMatch(/^[A-Z].*\.$/s)
  })

  it.each(ROUTES)('declares the headers of the rate limit for $method $path', ({ method, path, scope, endpoint }) => {
    const { responses } = document.paths[path]![method.toLowerCase()]!
    const declared = Object.entries(responses).filter(([, response]) => {
      const { $ref } = response as { $ref?: string }
      const { headers } = $ref === undefined ? response : document.components.responses[$ref.split('/').at(-1)!]!
      return Object.keys((headers ?? {}) as Json).filter((name) => name.startsWith('RateLimit-')).length === 3
    })
    const statuses = declared.map(([status]) => Number(status))
    if (scope !== null) expect(statuses).toEqual(expect.arrayContaining([statusOf(endpoint), 403, 429]))
    else expect(statuses).not.toContain(statusOf(endpoint))
    expect(statuses).not.toContain(401)
  })

  it('gives each cursor the form of the cursors of its list', () => {
    const place = { at: 1_763_700_000_000.123, id: '0199aaaa-0000-7000-8000-00000000000a' }
    const cursors = operations.flatMap(({ operationId, parameters }) =>
      parameters.filter(({ name }) => name === 'cursor').map(({ schema }) => ({ operationId, schema })),
    )
    expect(cursors.length).toBeGreaterThan(7)
    for (const { operationId, schema } of cursors) {
      const [, list] = /^\^(\w+)\\\./.exec(schema.pattern as string)!
      const judge = (text: string) => z.fromJSONSchema(schema).safeParse(text).success
      expect(judge(`${list}.${encodeCursor(place)}`), operationId).toBe(true)
      expect(judge(''), operationId).toBe(false)
      expect(schema.minLength, operationId).toBe(`${list}.${encodeCursor({ ...place, at: 0 })}`.length)
    }
  })

  it('describes every field of a request and gives lengths of time their unit', () => {
    for (const [name, { properties }] of Object.entries(document.components.schemas).filter(
      ([, schema]) => schema.additionalProperties === false,
    )) {
      for (const [field, property] of Object.entries(properties as Record<string, Json>)) {
        const described = [...walk(property, '')].some(([, { description }]) => typeof description === 'string')
        expect(described, `${name}.${field} has no description`).toBe(true)
        if (field.endsWith('_seconds')) expect(property.description, `${name}.${field}`).toMatch(/Seconds/)
      }
    }
    for (const { operationId, parameters } of operations)
      for (const { name, description } of parameters) expect(description, `${operationId} ${name}`).toBeTypeOf('string')
  })

  it('judges the limits of a request as the service does', () => {
    // zod reads no `not`: that a period and a schedule exclude each other is left to the tests of the route.
    const schema = readSchema(document as unknown as OpenApi, { $ref: '#/components/schemas/CheckUpdate' })
    const judge = (value: unknown) => schema.safeParse(value).success
    const service = ROUTES.find(({ id }) => id === 'updateCheck')!.endpoint.body!
    const values = [
      {},
      { name: 'x' },
      { name: '' },
      { name: 'x'.repeat(101) },
      { name: null },
      { name: ' ' },
      { name: ' a ' },
      { name: 'a\u001cb' },
      { name: 'a\u0085b' },
      { name: '💾'.repeat(100) },
      { slug: 'a_b' },
      { slug: '_' },
      { description: null },
      { description: 'a\tb\r\nc' },
      { description: 'a\u0000b' },
      { period_seconds: 9 },
      { period_seconds: 10 },
      { period_seconds: 10.5 },
      { period_seconds: '10' },
      { grace_seconds: 0 },
      { grace_seconds: -1 },
      { grace_seconds: 31_536_001 },
      { max_runtime_seconds: null },
      { max_runtime_seconds: 0 },
      { surprise: 1 },
    ]
    expect(values.map(judge)).toEqual(values.map((value) => service.safeParse(value).success))
  })
})

describe('the promises of the document', () => {
  const assertPromised = createPromises(document as unknown as OpenApi)
  const answer = (status: number, body: unknown) => ({ status, body, headers: new Headers() })

  it('are kept by what it says', () => {
    assertPromised('GET', '/projects', answer(200, { projects: [], next_cursor: null }))
    assertPromised('DELETE', '/projects/x', answer(204, null))
    assertPromised('GET', '/checks/x', answer(404, { error: 'check not found', code: 'not_found' }))
  })

  it.each<[string, string, number, unknown]>([
    ['GET', '/projects', 201, { projects: [], next_cursor: null }],
    ['GET', '/projects', 200, {}],
    ['GET', '/projects', 200, { projects: [] }],
    ['GET', '/projects', 200, { projects: [], next_cursor: null, secret: 1 }],
    ['GET', '/projects', 200, { projects: [{ id: 'x' }], next_cursor: null }],
    ['GET', '/checks/x', 404, { error: 'check not found' }],
    ['DELETE', '/projects/x', 204, {}],
  ])('are broken by %s %s -> %d %j', (method, path, status, body) => {
    expect(() => assertPromised(method, path, answer(status, body))).toThrow(/the document/)
  })
})
