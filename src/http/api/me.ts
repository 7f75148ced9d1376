/** The caller of the API, and the API's own description. */

import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import { describeCaller } from '../../tenancy/me.ts'
import { endpoint, openEndpoint } from './route.ts'

const Me = z
  .object({
    kind: z.enum(['user', 'api_key']),
    organization: z.object({ id: z.string().meta({ format: 'uuid' }), name: z.string() }),
    user: z
      .object({ id: z.string().meta({ format: 'uuid' }), email: z.string() })
      .nullable()
      .meta({ description: 'Null for an API key.' }),
    scope: z.enum(SCOPES),
    project_id: z.string().nullable().meta({ format: 'uuid', description: 'The project that the key is bound to.' }),
  })
  .meta({ id: 'Me' })

export const getMe = endpoint({
  id: 'getMe',
  summary: 'Get the caller: its kind, organization and scope',
  status: 200,
  response: Me,
  async handle({ context, caller }) {
    const { kind, organization, user, scope, projectId } = await describeCaller(context, caller)
    return { kind, organization, user, scope, project_id: projectId }
  },
})

const Document = z
  .record(z.string(), z.unknown())
  .meta({ id: 'OpenApiDocument', description: 'An OpenAPI 3.1 document.' })

export const getDocument = openEndpoint({
  id: 'getDocument',
  summary: 'This document',
  status: 200,
  response: Document,
  handle: async ({ describe }) => ({ ...describe() }),
})
