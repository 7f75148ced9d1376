/** What the document allows, the service accepts: requests that are generated from the schemas of the document pass ours. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { describeRoutes } from '../../../../src/http/api/openapi.ts'
import { readQuery } from '../../../../src/http/api/query.ts'
import { ROUTES } from '../../../../src/http/api/routes.ts'

interface JsonSchema {
  readonly $ref?: string
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly format?: string
  readonly pattern?: string
  readonly minLength?: number
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly uniqueItems?: boolean
  readonly items?: JsonSchema
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly propertyNames?: JsonSchema & { readonly not?: { readonly enum: readonly string[] } }
  readonly additionalProperties?: JsonSchema | false
  readonly maxProperties?: number
}

// As it is sent.
const document = JSON.parse(JSON.stringify(describeRoutes(ROUTES)))
const operations = ROUTES.map(({ id, method, path, endpoint }) => ({
  id,
  endpoint,
  described: document.paths[path][method.toLowerCase()] as {
    parameters: { name: string; in: string; required: boolean; schema: JsonSchema }[]
    requestBody?: { content: { 'application/json': { schema: JsonSchema } } }
  },
}))

/** Opaque, or a language of their own: a schema cannot say which texts are valid. */
const VALID_TEXTS: readonly [
  isMeant: (schema: JsonSchema) => boolean,
  texts: (schema: JsonSchema) => fc.Arbitrary<string>,
][] = [
  [({ pattern = '' }) => pattern.includes('://'), urlsOf],
  [
    ({ pattern = '' }) => pattern.includes('{51,71}'),
    () =>
      fc.constant(
        `list.${Buffer.from(`1763700000000123.${'0199aaaa-0000-7000-8000-00000000000a'}`).toString('base64url')}`,
      ),
  ],
]

/** Without a path where the schema allows none. */
function urlsOf({ pattern = '' }: JsonSchema): fc.Arbitrary<string> {
  const allowed = new RegExp(pattern, 'u')
  return fc.webUrl({ withQueryParameters: false }).map((url) => (allowed.test(url) ? url : new URL(url).origin))
}

function arbitraryOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const { $ref, anyOf, oneOf = anyOf, type, properties, additionalProperties } = schema
  if ($ref !== undefined) return arbitraryOf(document.components.schemas[$ref.split('/').at(-1)!])
  if (oneOf !== undefined) return fc.oneof(...oneOf.map(arbitraryOf))
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => arbitraryOf({ ...schema, type: one })))
  if (type === 'null') return fc.constant(null)
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer') return fc.integer({ min: schema.minimum ?? -(2 ** 31), max: schema.maximum ?? 2 ** 31 - 1 })
  if (type === 'array') {
    const { minItems: minLength = 0, maxItems: maxLength = 3 } = schema
    const lengths = { minLength, maxLength: Math.min(maxLength, Math.max(minLength, 3)) }
    const item = arbitraryOf(schema.items!)
    return schema.uniqueItems ? fc.uniqueArray(item, lengths) : fc.array(item, lengths)
  }
  if (properties !== undefined) {
    const fields = Object.fromEntries(Object.entries(properties).map(([name, inner]) => [name, arbitraryOf(inner)]))
    return fc.record(fields, { requiredKeys: [...(schema.required ?? [])] })
  }
  if (type === 'object') {
    const { propertyNames = {}, maxProperties: maxKeys = 3 } = schema
    const names = textOf(propertyNames).filter((name) => !propertyNames.not?.enum.includes(name))
    return fc.dictionary(names, arbitraryOf(additionalProperties || { type: 'string' }), {
      maxKeys: Math.min(maxKeys, 3),
    })
  }
  if (type === 'string') return textOf(schema)
  throw new Error(`no arbitrary for ${JSON.stringify(schema)}`)
}

function textOf(schema: JsonSchema): fc.Arbitrary<string> {
  const { format, pattern, minLength = 0, maxLength = 5_000 } = schema
  const valid = VALID_TEXTS.find(([isMeant]) => isMeant(schema))?.[1](schema)
  if (valid !== undefined) return valid
  if (format === 'uuid') return fc.uuid()
  if (format === 'date-time')
    return fc
      .date({ min: new Date(0), max: new Date('9999-12-31'), noInvalidDate: true })
      .map((date) => date.toISOString())
  const hasLength = (text: string) => {
    const length = Array.from(text).length
    return length >= minLength && length <= maxLength
  }
  const texts =
    pattern === undefined
      ? fc.string({ unit: 'grapheme', minLength, maxLength })
      : fc.stringMatching(new RegExp(pattern, 'u'))
  return texts.filter((text) => hasLength(text) && text.isWellFormed())
}

describe('what the document allows is accepted', () => {
  it.each(operations.filter(({ endpoint }) => endpoint.body !== undefined))(
    'in the body of $id',
    ({ endpoint, described }) => {
      const { schema } = described.requestBody!.content['application/json']
      fc.assert(
        fc.property(arbitraryOf(schema), (body) => {
          const { error } = endpoint.body!.safeParse(body)
          expect(error?.issues ?? []).toEqual([])
        }),
        { numRuns: 50 },
      )
    },
  )

  it.each(operations.filter(({ endpoint }) => endpoint.query !== undefined))(
    'in the query of $id',
    ({ endpoint, described }) => {
      const parameters = described.parameters.filter((parameter) => parameter.in === 'query')
      const query = fc.record(Object.fromEntries(parameters.map(({ name, schema }) => [name, arbitraryOf(schema)])), {
        requiredKeys: parameters.filter(({ required }) => required).map(({ name }) => name),
      })
      fc.assert(
        fc.property(query, (values) => {
          const pairs = Object.entries(values).flatMap(([name, value]) =>
            (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)] as [string, string]),
          )
          const text = String(new URLSearchParams(pairs)).replace('cursor=list.', `cursor=${listOf(described)}.`)
          const { error } = endpoint.query!.safeParse(readQuery(endpoint.query!, text))
          expect(error?.issues ?? []).toEqual([])
        }),
        { numRuns: 50 },
      )
    },
  )
})

function listOf({ parameters }: (typeof operations)[number]['described']): string {
  const pattern = parameters.find(({ name }) => name === 'cursor')?.schema.pattern ?? ''
  return /^\^(\w+)/.exec(pattern)?.[1] ?? ''
}
