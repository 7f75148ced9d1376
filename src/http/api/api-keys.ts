/** API keys: credentials for programs (design, sections 3.4 and 3.5). */

import {
  createApiKey as create,
  getApiKey as get,
  listApiKeys as list,
  revokeApiKey as revoke,
  updateApiKey as update,
} from '../../tenancy/api-keys.ts'
import {
  ApiKey,
  ApiKeyList,
  ApiKeyListQuery,
  ApiKeyParams,
  ApiKeyUpdate,
  CreatedApiKey,
  NewApiKey,
} from './api-keys.schema.ts'
import { readList } from './list-page.ts'
import { given, inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

export const listApiKeys = endpoint({
  summary: 'List the API keys, without their secrets',
  query: ApiKeyListQuery,
  response: ApiKeyList,
  handle: ({ context, caller, query }) => readList('api_keys', ApiKey, query, (piece) => list(context, caller, piece)),
})

export const createApiKey = endpoint({
  summary: 'Create an API key',
  body: NewApiKey,
  status: 201,
  response: CreatedApiKey,
  errors: ['not_found'],
  handle: ({ context, caller, body }) => create(context, caller, inCamelCase(body)),
})

export const getApiKey = endpoint({
  summary: 'Get an API key without its secret',
  params: ApiKeyParams,
  response: ApiKey,
  handle: ({ context, caller, params }) => get(context, caller, params.id),
})

export const updateApiKey = endpoint({
  summary: 'Change the name of an API key',
  params: ApiKeyParams,
  body: ApiKeyUpdate,
  response: ApiKey,
  handle: ({ context, caller, params, body }) => update(context, caller, params.id, given(body)),
})

export const revokeApiKey = endpoint({
  summary: 'Revoke an API key: it becomes invalid at once; the last admin cannot be removed',
  params: ApiKeyParams,
  errors: ['last_admin'],
  handle: ({ context, caller, params }) => revoke(context, caller, params.id),
})
