/** Users: people who log in (design, section 3.5). */

import { createUser as create, listUsers as list, removeUser as remove, type UserRecord } from '../../tenancy/users.ts'
import { PageQuery } from './fields.ts'
import { presentNext, toIso, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'
import { NewUser, User, UserList, UserParams } from './users.schema.ts'

export const listUsers = endpoint({
  id: 'listUsers',
  summary: 'List the users',
  query: PageQuery,
  status: 200,
  response: UserList,
  async handle({ context, caller, query }) {
    const page = await list(context, caller, toPageRequest(query))
    return { users: page.rows.map(presentUser), ...presentNext(page) }
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

export const removeUser = endpoint({
  id: 'removeUser',
  summary: 'Remove a user; the last admin cannot be removed',
  params: UserParams,
  status: 204,
  response: null,
  errors: ['conflict'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

function presentUser({ id, email, scope, createdAt }: UserRecord) {
  return { id, email, scope, created_at: toIso(createdAt) }
}
