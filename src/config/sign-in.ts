/**
 * Reads SIGN_IN: a JSON array of identity providers with which users sign in to the dashboard. A fault names the entry
 * and the field, and quotes no value: it may be a secret.
 */

import { z } from 'zod'
import { SCOPES } from '../domain/access.ts'
import type { SignInProvider } from '../domain/issuer.ts'
import { entriesOf, findSubjectFault, identifier, issuerUrl, textOf, usersBySubject } from './issuers.ts'

const NAME = /^[A-Za-z0-9-]{1,32}$/
const SECRET_LENGTH = 2_048
const EXAMPLE =
  '[{"name":"Example","issuer":"https://login.example.com","client_id":"heartbeat","client_secret":"..."}]'

const ENTRY = z.strictObject(
  {
    name: z.string('must be text').regex(NAME, 'must be 1 to 32 letters, digits and -'),
    issuer: issuerUrl,
    client_id: identifier,
    client_secret: textOf(SECRET_LENGTH),
    users: usersBySubject,
    create_users: z.strictObject({ scope: z.enum(SCOPES) }).optional(),
  },
  'must be an object',
)

export const signInProviders = entriesOf({
  entry: ENTRY,
  example: EXAMPLE,
  fields: 'name, issuer, client_id, client_secret, users and create_users',
  shapes: {
    create_users: `create_users must be an object such as {"scope":"read"}, with a scope of ${SCOPES.join(', ')}`,
  },
  read({ name, issuer, client_id, client_secret, users = {}, create_users }, before: readonly SignInProvider[]) {
    const isDouble = before.some((provider) => provider.name === name)
    const newUserScope = create_users?.scope ?? null
    const client = { clientId: client_id, clientSecret: client_secret }
    return [
      { name, issuer, ...client, users: new Map(Object.entries(users)), newUserScope },
      findSubjectFault(users),
      isDouble ? 'name is the same as in an entry before it: choose another' : null,
    ]
  },
})
