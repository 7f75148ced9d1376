import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import * as field from './fields.ts'

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

export const ApiKeyUpdate = z
  .strictObject({ name: field.name('key').optional() })
  .meta({ id: 'ApiKeyUpdate', description: 'Omitted fields keep their values.' })

const fields = {
  id: z.string().meta({ format: 'uuid' }),
  name: z.string(),
  prefix: z.string().meta({ description: 'The public part of the key, by which it can be recognised.' }),
  scope: z.enum(SCOPES),
  project_id: z.string().nullable().meta({ format: 'uuid' }),
  expires_at: field.instant('The time when the key expires.').nullable(),
  last_used_at: field.instant('The time of the last use, accurate to about a minute.').nullable(),
  created_at: field.instant('When the key was made.'),
  created_by: field.creator(),
}

export const ApiKey = z.object(fields).meta({ id: 'ApiKey' })

export const CreatedApiKey = field.shape('CreatedApiKey', {
  ...fields,
  key: z.string().meta({ description: 'The key itself. It is returned only here, and is not stored.' }),
})

export const ApiKeyList = field.listOf('ApiKeyList', 'api_keys', ApiKey)

export const ApiKeyListQuery = field.pageQuery('api_keys')

export const ApiKeyParams = field.idOf('API key')
