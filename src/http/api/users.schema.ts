import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import * as field from './fields.ts'

export const NewUser = z
  .strictObject({
    email: field.email(),
    password: field.newPassword(),
    scope: field.oneOf(SCOPES).meta({ description: 'What the user may do. Each scope includes the ones before it.' }),
  })
  .meta({ id: 'NewUser' })

export const User = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    email: z.string(),
    scope: z.enum(SCOPES),
    created_at: field.instant('When the user was added.'),
  })
  .meta({ id: 'User' })

export const UserList = z.object({ users: z.array(User), next_cursor: field.nextCursor() }).meta({ id: 'UserList' })

export const UserParams = field.idOf('user')
