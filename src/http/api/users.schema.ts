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

export const UserUpdate = z
  .strictObject({
    password: field
      .newPassword()
      .optional()
      .meta({ description: 'New password: all sessions of the user end. Left out: no change.' }),
    scope: field.oneOf(SCOPES).optional().meta({ description: 'What the user may do. Left out: no change.' }),
  })
  .meta({ id: 'UserUpdate' })

export const User = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    email: z.string(),
    scope: z.enum(SCOPES),
    created_at: field.instant('When the user was added.'),
    created_by: field.creator(),
  })
  .meta({ id: 'User' })

export const UserList = field.listOf('UserList', 'users', User)

export const UserListQuery = field.pageQuery('users')

export const UserParams = field.idOf('user')
