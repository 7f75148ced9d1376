/** The caller of the API, and the API's own description. */

import { z } from 'zod'
import { PASSWORD_LOGIN_OFF } from '../../auth/errors.ts'
import { SCOPES } from '../../domain/access.ts'
import { AppError } from '../../domain/errors.ts'
import * as verbs from '../../tenancy/me.ts'
import * as field from './fields.ts'
import { listEndpoint, showRows } from './list-page.ts'
import { inCamelCase } from './present.ts'
import { endpoint, openEndpoint } from './route.ts'

const Me = field.shape('Me', {
  kind: z.enum(['user', 'api_key']),
  organization: z.object({ id: field.id(), name: z.string() }),
  user: z.object({ id: field.id(), email: z.string() }).nullable().meta({ description: 'Null for an API key.' }),
  key: z
    .object({
      id: field.id(),
      name: z.string(),
      prefix: field.string('The public part of the key, by which it can be recognised.'),
      expires_at: field.instant('The time when the key expires. Null: never.').nullable(),
    })
    .nullable()
    .meta({ description: 'The API key of the call. Null for a user.' }),
  scope: z.enum(SCOPES),
  project_id: field.idOrNull('The project that the key is bound to.'),
})

export const getMe = endpoint({
  summary: 'Get the caller: its kind, organization, scope, and which key or user it is',
  response: Me,
  handle: async ({ context, caller }) => ({
    ...(await verbs.describeCaller(context, caller)),
    key: await verbs.describeKey(context, caller),
  }),
})

export const PasswordChange = field.strictShape('PasswordChange', {
  current_password: field.credential('The present password.'),
  new_password: field.newPassword(),
})

export const changePassword = endpoint({
  summary: 'Change your own password: all your other sessions end',
  body: PasswordChange,
  async handle({ context, caller, isPasswordLoginOn, body, address }) {
    if (!isPasswordLoginOn) throw new AppError('forbidden', PASSWORD_LOGIN_OFF)
    await verbs.changeOwnPassword(context, caller, { ...inCamelCase(body), address })
  },
})

const Session = field.shape('Session', {
  id: field.id(),
  kind: z.enum(['token', 'dashboard']).meta({ description: '`token`: of `POST /auth/login`.' }),
  created_at: field.instant('When the user logged in.'),
  last_used_at: field.instant('The time of the last use, accurate to about a minute.'),
  address: field.stringOrNull('Network address of the log-in or of the last refresh. Null: not known.'),
  current: z.boolean().meta({ description: 'Whether this call was made with the session.' }),
})

export const listSessions = listEndpoint({
  list: 'sessions',
  entry: Session,
  summary: 'List your own sessions; not for API keys',
  query: field.pageQuery('sessions'),
  read: async ({ context, caller }, piece) =>
    showRows(await verbs.listOwnSessions(context, caller, piece), (session) => ({
      ...session,
      current: session.isCurrent,
    })),
})

export const endSession = endpoint({
  summary: 'End one of your own sessions, with its tokens',
  params: field.idOf('session'),
  handle: ({ context, caller, params }) => verbs.endOwnSession(context, caller, params.id),
})

const Document = z
  .record(z.string(), z.unknown())
  .meta({ id: 'OpenApiDocument', description: 'An OpenAPI 3.1 document.' })

export const getDocument = openEndpoint({
  summary: 'This document',
  response: Document,
  // Of HTTP that is not valid, such as two Host headers.
  errors: ['invalid_request'],
  handle: async ({ describe }) => describe(),
})
