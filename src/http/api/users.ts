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
  id: 'listUsers',
  summary: 'List the users',
  query: UserListQuery,
  status: 200,
  response: UserList,
  handle: ({ context, caller, query }) => readList('users', User, query, (piece) => list(context, caller, piece)),
})

export const createUser = endpoint({
  id: 'createUser',
  summary: 'Add a user',
  body: NewUser,
  status: 201,
  response: User,
  errors: ['conflict'],
  handle: ({ context, caller, body }) => create(context, caller, body),
})

export const getUser = endpoint({
  id: 'getUser',
  summary: 'Get a user',
  params: UserParams,
  status: 200,
  response: User,
  handle: ({ context, caller, params }) => get(context, caller, params.id),
})

export const updateUser = endpoint({
  id: 'updateUser',
  summary: 'Change the password or the scope of a user; the last admin cannot lose the scope',
  params: UserParams,
  body: UserUpdate,
  status: 200,
  response: User,
  errors: ['last_admin'],
  handle: ({ context, caller, params, body }) => update(context, caller, params.id, body),
})

export const removeUser = endpoint({
  id: 'removeUser',
  summary: 'Remove a user; the last admin cannot be removed',
  params: UserParams,
  status: 204,
  response: null,
  errors: ['last_admin'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})
