/** JSON Schemas for /openapi.json, made from the schemas that requests and responses pass through. */

import { z } from 'zod'

export type Json = Record<string, unknown>

export const SCHEMAS = '#/components/schemas/'

/** A reference to the schema in the components. Throws for a schema without an id. */
export function refTo(schema: z.ZodType): Json {
  const id = schema.meta()?.id
  if (id === undefined)
    throw new Error('a schema of a request body or a response has no id: give it one with meta({ id })')
  return { $ref: SCHEMAS + id }
}

/** The components: each schema with an id. */
export function describeSchemas(): Json {
  const uri = (id: string) => SCHEMAS + id
  const { schemas } = z.toJSONSchema(z.globalRegistry, { ...SETTINGS, override: tidyBody, uri })
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, withoutHead(schema)]))
}

/** The schema of a query or of the parameters of a path. */
export function describeObject(schema: z.ZodObject): { properties: Record<string, Json>; required?: string[] } {
  return withoutHead(z.toJSONSchema(schema, { ...SETTINGS, override: tidy })) as {
    properties: Record<string, Json>
    required?: string[]
  }
}

/** `input`: requests before transformation; responses without `additionalProperties: false`, so that strict clients accept fields added later. */
const SETTINGS = { io: 'input', target: 'draft-2020-12' } as const

interface Made {
  readonly zodSchema: z.core.$ZodType
  readonly jsonSchema: z.core.JSONSchema.BaseSchema
}

/** Removes what zod adds (patterns of dates, bounds of JavaScript's integers) and adds what it omits (defaults of transformed fields). */
function tidy({ zodSchema, jsonSchema }: Made): void {
  if (jsonSchema.format === 'date-time') delete jsonSchema.pattern
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  const standard = z.globalRegistry.get(zodSchema)?.default
  if (standard !== undefined) jsonSchema.default = standard as number
}

/**
 * A default is written in words: generators of clients require fields that have one. A union by a field names that field, so that
 * generators can tell its members apart.
 */
function tidyBody(made: Made): void {
  tidy(made)
  const { zodSchema, jsonSchema } = made
  if (jsonSchema.default !== undefined) {
    const { description = '', default: standard } = jsonSchema
    jsonSchema.description = `${description} Default: ${JSON.stringify(standard)}.`.trimStart()
    delete jsonSchema.default
  }
  if (zodSchema instanceof z.ZodDiscriminatedUnion) {
    const { discriminator: propertyName } = zodSchema.def
    const options = zodSchema.options as readonly z.ZodObject[]
    const mapping = Object.fromEntries(
      options.map((option) => [(option.shape[propertyName] as z.ZodLiteral).value, refTo(option).$ref]),
    )
    Object.assign(jsonSchema, { discriminator: { propertyName, mapping } })
  }
}

function withoutHead({ $schema: _schema, $id: _id, id: _name, ...schema }: Json): Json {
  return schema
}
