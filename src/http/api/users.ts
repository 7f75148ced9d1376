/** Users: people who log in (design, section 3.5). */

import {
  createUser as create,
  getUser as get,
  listUsers as list,
  removeUser as remove,
  updateUser as update,
} from '../../tenancy/users.ts'
import { readList } from './list-page.ts'
import { endpoint } from './route.ts'
import { NewUser, User, UserList, UserListQuery, UserParams, UserUpdate } from './users.schema.ts'

export const listUsers = endpoint({
  summary: 'List the users',
  query: UserListQuery,
  response: UserList,
  handle: ({ context, caller, query }) => readList('users', User, query, (piece) => list(context, caller, piece)),
})

export const createUser = endpoint({
  summary: 'Add a user',
  body: NewUser,
  status: 201,
  response: User,
  errors: ['conflict'],
  handle: ({ context, caller, body }) => create(context, caller, body),
})

export const getUser = endpoint({
  summary: 'Get a user',
  params: UserParams,
  response: User,
  handle: ({ context, caller, params }) => get(context, caller, params.id),
})

export const updateUser = endpoint({
  summary: 'Change the password or the scope of a user; the last admin cannot lose the scope',
  params: UserParams,
  body: UserUpdate,
  response: User,
  errors: ['last_admin'],
  handle: ({ context, caller, params, body }) => update(context, caller, params.id, body),
})

export const removeUser = endpoint({
  summary: 'Remove a user; the last admin cannot be removed',
  params: UserParams,
  errors: ['last_admin'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})
