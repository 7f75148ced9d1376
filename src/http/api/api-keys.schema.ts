import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import * as field from './fields.ts'

export const NewApiKey = z
  .strictObject({
    name: field.name('key'),
    scope: field.oneOf(SCOPES).meta({ description: 'What the key may do; each scope includes the ones before it.' }),
    project_id: field
      .uuid('Binds the key to one project; everything else is then unknown to it.')
      .nullable()
      .optional(),
    expires_at: field
      .moment()
      .nullable()
      .optional()
      .meta({ description: 'From then on the key is refused. Null: never.' }),
  })
  .meta({ id: 'NewApiKey' })

const fields = {
  id: z.string().meta({ format: 'uuid' }),
  name: z.string(),
  prefix: z.string().meta({ description: 'The part of the key that is no secret, to recognise it by.' }),
  scope: z.enum(SCOPES),
  project_id: z.string().nullable().meta({ format: 'uuid' }),
  expires_at: field.instant('From then on the key is refused.').nullable(),
  last_used_at: field.instant('Last use, to within minutes.').nullable(),
  created_at: field.instant('When the key was made.'),
}

export const ApiKey = z.object(fields).meta({ id: 'ApiKey' })

export const CreatedApiKey = z
  .object({ ...fields, key: z.string().meta({ description: 'The key itself: shown this once, and stored nowhere.' }) })
  .meta({ id: 'CreatedApiKey' })

export const ApiKeyList = z
  .object({ api_keys: z.array(ApiKey), next_cursor: field.nextCursor() })
  .meta({ id: 'ApiKeyList' })

export const ApiKeyParams = field.idOf('API key')
