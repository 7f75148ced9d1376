/** Every request and response of the document has an example that its schema accepts. test/http/api/examples.test.ts sends them. */

import { describe, expect, it } from 'vitest'
import { EXAMPLES } from '../../../../src/http/api/examples.ts'
import { describeRoutes } from '../../../../src/http/api/openapi.ts'
import { ROUTES } from '../../../../src/http/api/routes.ts'
import { type Json, type OpenApi, readSchema } from '../../../support/api-client.ts'

type Content = Record<string, { schema: Json; example?: unknown }>
interface Operation {
  readonly operationId: string
  readonly requestBody?: { content: Content }
  readonly responses: Record<string, { content?: Content; $ref?: string }>
  readonly parameters: readonly { name: string; required: boolean; schema: Json; example?: unknown }[]
}

// As it is sent.
const document = JSON.parse(JSON.stringify(describeRoutes(ROUTES))) as OpenApi & {
  paths: Record<string, Record<string, Operation>>
  webhooks: { event: { post: Operation } }
  components: { responses: Record<string, { content?: Content }> }
}
const operations = [
  ...Object.values(document.paths).flatMap((item) => Object.values(item)),
  document.webhooks.event.post,
]

const contents: readonly (readonly [string, Content])[] = [
  ...operations.flatMap(({ operationId, requestBody, responses }) => [
    ...(requestBody === undefined ? [] : [[`the request of ${operationId}`, requestBody.content] as const]),
    ...Object.entries(responses).flatMap(([status, { content }]) =>
      content === undefined ? [] : [[`the response ${status} of ${operationId}`, content] as const],
    ),
  ]),
  ...Object.entries(document.components.responses).flatMap(([name, { content }]) =>
    content === undefined ? [] : [[`the error ${name}`, content] as const],
  ),
]

describe('an example', () => {
  it.each(contents)('of %s is there and fits its schema', (place, content) => {
    for (const [type, { schema, example }] of Object.entries(content)) {
      if (example === undefined)
        throw new Error(`${place} (${type}) has no example: add one to EXAMPLES of src/http/api/examples.ts`)
      const { error } = readSchema(document, schema).safeParse(example)
      if (error !== undefined)
        throw new Error(
          `the example of ${place} does not fit its schema: correct it in src/http/api/examples.ts: ${error.message}`,
        )
    }
  })

  it('is there for each required parameter and fits its schema', () => {
    for (const { operationId, parameters } of operations) {
      for (const { name, required, schema, example } of parameters) {
        if (required) expect(example, `${operationId}: ${name} has no example`).toBeDefined()
        if (example !== undefined)
          expect(readSchema(document, schema).safeParse(example).success, `${operationId}: ${name}`).toBe(true)
      }
    }
  })

  it('belongs to an operation that exists', () => {
    const ids = ROUTES.map(({ id }) => id)
    expect(Object.keys(EXAMPLES).filter((id) => !ids.includes(id))).toEqual([])
  })
})
