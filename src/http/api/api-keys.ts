/** API keys: credentials for programs (design, sections 3.4 and 3.5). */

import { inPieces } from '../../domain/page.ts'
import {
  type ApiKeyRecord,
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
import { given, readEntries, toIso, toIsoOrNull, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listApiKeys = endpoint({
  id: 'listApiKeys',
  summary: 'List the API keys, without their secrets',
  query: ApiKeyListQuery,
  status: 200,
  response: ApiKeyList,
  async handle({ context, caller, query }) {
    const pieces = inPieces(toPageRequest(query), (piece) => list(context, caller, piece))
    const { entries, next_cursor } = await readEntries('api_keys', pieces, presentApiKey)
    return { api_keys: entries, next_cursor }
  },
})

export const createApiKey = endpoint({
  id: 'createApiKey',
  summary: 'Create an API key',
  body: NewApiKey,
  status: 201,
  response: CreatedApiKey,
  errors: ['not_found'],
  async handle({ context, caller, body }) {
    const { name, scope, project_id: projectId = null, expires_at: expiresAt = null } = body
    const created = await create(context, caller, { name, scope, projectId, expiresAt })
    return { ...presentApiKey(created), key: created.key }
  },
})

export const getApiKey = endpoint({
  id: 'getApiKey',
  summary: 'Get an API key without its secret',
  params: ApiKeyParams,
  status: 200,
  response: ApiKey,
  handle: async ({ context, caller, params }) => presentApiKey(await get(context, caller, params.id)),
})

export const updateApiKey = endpoint({
  id: 'updateApiKey',
  summary: 'Change the name of an API key',
  params: ApiKeyParams,
  body: ApiKeyUpdate,
  status: 200,
  response: ApiKey,
  handle: async ({ context, caller, params, body }) =>
    presentApiKey(await update(context, caller, params.id, given(body))),
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

function presentApiKey(key: ApiKeyRecord) {
  const { id, name, prefix, scope, projectId, expiresAt, lastUsedAt, createdAt, createdBy } = key
  return {
    id,
    name,
    prefix,
    scope,
    project_id: projectId,
    expires_at: toIsoOrNull(expiresAt),
    last_used_at: toIsoOrNull(lastUsedAt),
    created_at: toIso(createdAt),
    created_by: createdBy,
  }
}
