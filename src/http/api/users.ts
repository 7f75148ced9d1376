/** Users: people who log in (design, section 3.5). */

import { inPieces } from '../../domain/page.ts'
import {
  createUser as create,
  getUser as get,
  listUsers as list,
  removeUser as remove,
  type UserRecord,
  updateUser as update,
} from '../../tenancy/users.ts'
import { readEntries, toIso, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'
import { NewUser, User, UserList, UserListQuery, UserParams, UserUpdate } from './users.schema.ts'

export const listUsers = endpoint({
  id: 'listUsers',
  summary: 'List the users',
  query: UserListQuery,
  status: 200,
  response: UserList,
  async handle({ context, caller, query }) {
    const pieces = inPieces(toPageRequest(query), (piece) => list(context, caller, piece))
    const { entries, next_cursor } = await readEntries('users', pieces, presentUser)
    return { users: entries, next_cursor }
  },
})

export const createUser = endpoint({
  id: 'createUser',
  summary: 'Add a user',
  body: NewUser,
  status: 201,
  response: User,
  errors: ['conflict'],
  handle: async ({ context, caller, body }) => presentUser(await create(context, caller, body)),
})

export const getUser = endpoint({
  id: 'getUser',
  summary: 'Get a user',
  params: UserParams,
  status: 200,
  response: User,
  handle: async ({ context, caller, params }) => presentUser(await get(context, caller, params.id)),
})

export const updateUser = endpoint({
  id: 'updateUser',
  summary: 'Change the password or the scope of a user; the last admin cannot lose the scope',
  params: UserParams,
  body: UserUpdate,
  status: 200,
  response: User,
  errors: ['last_admin'],
  handle: async ({ context, caller, params, body }) => presentUser(await update(context, caller, params.id, body)),
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

function presentUser({ id, email, scope, createdAt, createdBy }: UserRecord) {
  return { id, email, scope, created_at: toIso(createdAt), created_by: createdBy }
}
