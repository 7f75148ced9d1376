/** Users: people who log in (design, section 3.5). */

import { z } from 'zod'
import { SCOPES } from '../../domain/access.ts'
import * as verbs from '../../tenancy/users.ts'
import * as field from './fields.ts'
import { listEndpoint } from './list-page.ts'
import { endpoint } from './route.ts'

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
  id: field.id(),
  email: z.string(),
  scope: z.enum(SCOPES),
  created_at: field.instant('When the user was added.'),
  created_by: field.creator(),
})

export const UserParams = field.idOf('user')

export const listUsers = listEndpoint({
  list: 'users',
  entry: User,
  summary: 'List the users',
  query: field.pageQuery('users'),
  read: ({ context, caller }, piece) => verbs.listUsers(context, caller, piece),
})

export const createUser = endpoint({
  summary: 'Add a user',
  body: NewUser,
  status: 201,
  response: User,
  errors: ['conflict'],
  handle: ({ context, caller, body }) => verbs.createUser(context, caller, body),
})

export const getUser = endpoint({
  summary: 'Get a user',
  params: UserParams,
  response: User,
  handle: ({ context, caller, params }) => verbs.getUser(context, caller, params.id),
})

export const updateUser = endpoint({
  summary: 'Change the password or the scope of a user; the last admin cannot lose the scope',
  params: UserParams,
  body: UserUpdate,
  response: User,
  errors: ['last_admin'],
  handle: ({ context, caller, params, body }) => verbs.updateUser(context, caller, params.id, body),
})

export const removeUser = endpoint({
  summary: 'Remove a user; the last admin cannot be removed',
  params: UserParams,
  errors: ['last_admin'],
  handle: ({ context, caller, params }) => verbs.removeUser(context, caller, params.id),
})
