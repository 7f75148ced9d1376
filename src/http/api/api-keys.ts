/** API keys: credentials for programs (design, sections 3.4 and 3.5). */

import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import * as verbs from '../../tenancy/api-keys.ts'
import * as field from './fields.ts'
import { listEndpoint } from './list-page.ts'
import { given, inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

export const NewApiKey = field.strictShape('NewApiKey', {
  name: field.name('key'),
  scope: field.oneOf(SCOPES).meta({ description: 'What the key may do. Each scope includes the ones before it.' }),
  project_id: field
    .uuid('Binds the key to one project. All other projects are then not found for it.')
    .nullable()
    .optional(),
  expires_at: field.moment().nullable().optional().meta({
    description:
      'The time when the key expires. Null: never. A key that a key creates expires no later than its creator.',
  }),
})

const fields = {
  id: field.id(),
  name: z.string(),
  prefix: field.string('The public part of the key, by which it can be recognised.'),
  scope: z.enum(SCOPES),
  project_id: field.idOrNull(),
  expires_at: field.instant('The time when the key expires.').nullable(),
  last_used_at: field.instant('The time of the last use, accurate to about a minute.').nullable(),
  created_at: field.instant('When the key was made.'),
  created_by: field.creator(),
}

export const ApiKey = z.object(fields).meta({ id: 'ApiKey' })

export const CreatedApiKey = field.shape('CreatedApiKey', {
  ...fields,
  key: field.string('The key itself. It is returned only here, and is not stored.'),
})

export const ApiKeyParams = field.idOf('API key')

export const listApiKeys = listEndpoint({
  list: 'api_keys',
  entry: ApiKey,
  summary: 'List the API keys, without their secrets',
  query: field.pageQuery('api_keys'),
  read: ({ context, caller }, piece) => verbs.listApiKeys(context, caller, piece),
})

export const createApiKey = endpoint({
  summary: 'Create an API key',
  body: NewApiKey,
  status: 201,
  response: CreatedApiKey,
  errors: ['not_found'],
  handle: ({ context, caller, body }) => verbs.createApiKey(context, caller, inCamelCase(body)),
})

export const getApiKey = endpoint({
  summary: 'Get an API key without its secret',
  params: ApiKeyParams,
  response: ApiKey,
  handle: ({ context, caller, params }) => verbs.getApiKey(context, caller, params.id),
})

export const updateApiKey = endpoint({
  summary: 'Change the name of an API key',
  params: ApiKeyParams,
  body: z
    .strictObject({ name: field.name('key').optional() })
    .meta({ id: 'ApiKeyUpdate', description: 'Omitted fields keep their values.' }),
  response: ApiKey,
  handle: ({ context, caller, params, body }) => verbs.updateApiKey(context, caller, params.id, given(body)),
})

export const revokeApiKey = endpoint({
  summary: 'Revoke an API key: it becomes invalid at once; the last admin cannot be removed',
  params: ApiKeyParams,
  errors: ['last_admin'],
  handle: ({ context, caller, params }) => verbs.revokeApiKey(context, caller, params.id),
})
