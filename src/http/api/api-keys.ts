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
  id: 'listApiKeys',
  summary: 'List the API keys, without their secrets',
  query: ApiKeyListQuery,
  status: 200,
  response: ApiKeyList,
  handle: ({ context, caller, query }) => readList('api_keys', ApiKey, query, (piece) => list(context, caller, piece)),
})

export const createApiKey = endpoint({
  id: 'createApiKey',
  summary: 'Create an API key',
  body: NewApiKey,
  status: 201,
  response: CreatedApiKey,
  errors: ['not_found'],
  handle: ({ context, caller, body }) => create(context, caller, inCamelCase(body)),
})

export const getApiKey = endpoint({
  id: 'getApiKey',
  summary: 'Get an API key without its secret',
  params: ApiKeyParams,
  status: 200,
  response: ApiKey,
  handle: ({ context, caller, params }) => get(context, caller, params.id),
})

export const updateApiKey = endpoint({
  id: 'updateApiKey',
  summary: 'Change the name of an API key',
  params: ApiKeyParams,
  body: ApiKeyUpdate,
  status: 200,
  response: ApiKey,
  handle: ({ context, caller, params, body }) => update(context, caller, params.id, given(body)),
})

export const revokeApiKey = endpoint({
  id: 'revokeApiKey',
  summary: 'Revoke an API key: it becomes invalid at once; the last admin cannot be removed',
  params: ApiKeyParams,
  status: 204,
  response: null,
  errors: ['last_admin'],
  handle: ({ context, caller, params }) => revoke(context, caller, params.id),
})
