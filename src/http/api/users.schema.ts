import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import * as field from './fields.ts'

export const NewUser = field.strictShape('NewUser', {
  email: field.email(),
  password: field.newPassword(),
  scope: field.oneOf(SCOPES).meta({ description: 'What the user may do. Each scope includes the ones before it.' }),
})

export const UserUpdate = field.strictShape('UserUpdate', {
  password: field
    .newPassword()
    .optional()
    .meta({ description: 'New password: all sessions of the user end. Left out: no change.' }),
  scope: field.oneOf(SCOPES).optional().meta({ description: 'What the user may do. Left out: no change.' }),
})

export const User = field.shape('User', {
  id: z.string().meta({ format: 'uuid' }),
  email: z.string(),
  scope: z.enum(SCOPES),
  created_at: field.instant('When the user was added.'),
  created_by: field.creator(),
})

export const UserList = field.listOf('UserList', 'users', User)

export const UserListQuery = field.pageQuery('users')

export const UserParams = field.idOf('user')
