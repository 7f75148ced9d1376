/** API keys: credentials for programs (design, sections 3.4 and 3.5). */

import {
  type ApiKeyRecord,
  createApiKey as create,
  listApiKeys as list,
  revokeApiKey as revoke,
} from '../../tenancy/api-keys.ts'
import { ApiKeyList, ApiKeyParams, CreatedApiKey, NewApiKey } from './api-keys.schema.ts'
import { PageQuery } from './fields.ts'
import { presentNext, toIso, toIsoOrNull, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listApiKeys = endpoint({
  id: 'listApiKeys',
  summary: 'List the API keys, without their secrets',
  query: PageQuery,
  status: 200,
  response: ApiKeyList,
  async handle({ context, caller, query }) {
    const page = await list(context, caller, toPageRequest(query))
    return { api_keys: page.rows.map(presentApiKey), ...presentNext(page) }
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

export const revokeApiKey = endpoint({
  id: 'revokeApiKey',
  summary: 'Revoke an API key: it becomes invalid at once',
  params: ApiKeyParams,
  status: 204,
  response: null,
  handle: ({ context, caller, params }) => revoke(context, caller, params.id),
})

function presentApiKey({ id, name, prefix, scope, projectId, expiresAt, lastUsedAt, createdAt }: ApiKeyRecord) {
  return {
    id,
    name,
    prefix,
    scope,
    project_id: projectId,
    expires_at: toIsoOrNull(expiresAt),
    last_used_at: toIsoOrNull(lastUsedAt),
    created_at: toIso(createdAt),
  }
}
