import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { describeRoutes } from '../../../../src/http/api/openapi.ts'
import { ROUTES } from '../../../../src/http/api/routes.ts'
import { createPromises, type OpenApi } from '../../../support/api-client.ts'

type Json = Record<string, unknown>
interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly security: readonly Json[]
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: Json; description?: string }[]
  readonly requestBody?: Json
  readonly responses: Record<string, Json>
}

// As it is sent.
const document = JSON.parse(JSON.stringify(describeRoutes(ROUTES))) as Json & {
  openapi: string
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Json>; responses: Record<string, Json>; securitySchemes: Json }
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
    expect(listed.sort()).toEqual(ROUTES.map(({ method, path }) => `${method} ${path}`).sort())
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
    expect(statuses).toContain(endpoint.status)
    expect(statuses).toEqual(expect.arrayContaining([500, 503]))
    if (scope !== null) expect(statuses).toEqual(expect.arrayContaining([401, 403, 429]))
    if (endpoint.body !== undefined) expect(statuses).toEqual(expect.arrayContaining([400, 413, 415]))
    if (inPath.length > 0) expect(statuses).toContain(404)
    expect((endpoint.status === 204) === (endpoint.response === null)).toBe(true)
  })

  it('refers only to what it holds, and holds only what it refers to', () => {
    const refs = new Set(places.flatMap(([, { $ref }]) => ($ref === undefined ? [] : [$ref as string])))
    const held = (['schemas', 'responses'] as const).flatMap((kind) =>
      Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
    )
    // 405 belongs to no operation: it answers methods that are none.
    expect([...refs, '#/components/responses/method_not_allowed'].sort()).toEqual(held.sort())
  })

  it('is plain JSON Schema: no leftovers of the library', () => {
    for (const [place, object] of places) {
      for (const name of ['$schema', '$id', '$defs']) expect(object, place).not.toHaveProperty(name)
      expect(object.minimum, place).not.toBe(Number.MIN_SAFE_INTEGER)
      expect(object.maximum, place).not.toBe(Number.MAX_SAFE_INTEGER)
    }
    for (const schema of Object.values(document.components.schemas)) expect(schema).not.toHaveProperty('id')
  })

  it('refuses unknown fields in requests, and leaves answers room to grow', () => {
    const requests = new Set(
      operations.flatMap(({ requestBody }) =>
        [...walk(requestBody, '')].flatMap(([, { $ref }]) => ($ref as string | undefined)?.split('/').at(-1) ?? []),
      ),
    )
    expect(requests.size).toBeGreaterThan(5)
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      if (requests.has(name)) expect(schema.additionalProperties, name).toBe(false)
      else expect(schema.additionalProperties, name).not.toBe(false)
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
    const { not: _not, ...fields } = document.components.schemas.CheckUpdate!
    const schema = z.fromJSONSchema(fields)
    const judge = (value: unknown) => schema.safeParse(value).success
    const service = ROUTES.find(({ endpoint }) => endpoint.id === 'updateCheck')!.endpoint.body!
    const values = [
      {},
      { name: 'x' },
      { name: '' },
      { name: 'x'.repeat(101) },
      { name: null },
      { slug: 'a_b' },
      { slug: '_' },
      { description: null },
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
    assertPromised('GET', '/projects', answer(200, { projects: [] }))
    assertPromised('DELETE', '/projects/x', answer(204, null))
    assertPromised('GET', '/checks/x', answer(404, { error: 'check not found' }))
  })

  it.each<[string, string, number, unknown]>([
    ['GET', '/projects', 201, { projects: [] }],
    ['GET', '/projects', 200, {}],
    ['GET', '/projects', 200, { projects: [], secret: 1 }],
    ['GET', '/projects', 200, { projects: [{ id: 'x' }] }],
    ['GET', '/checks/x', 404, { message: 'check not found' }],
    ['DELETE', '/projects/x', 204, {}],
  ])('are broken by %s %s -> %d %j', (method, path, status, body) => {
    expect(() => assertPromised(method, path, answer(status, body))).toThrow(/the document/)
  })
})
