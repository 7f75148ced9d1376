/**
 * Reads SIGN_IN: a JSON array of identity providers with which users sign in to the dashboard. A fault names the entry
 * and the field, and quotes no value: it may be a secret.
 */

import { z } from 'zod'
import { SCOPES } from '../domain/access.ts'
import type { SignInProvider } from '../domain/issuer.ts'
import { entriesOf, identifier, issuerUrl, textOf, usersBySubject } from './issuers.ts'

const NAME = /^[A-Za-z0-9-]{1,32}$/
const SECRET_LENGTH = 2_048
const EXAMPLE =
  '[{"name":"Example","issuer":"https://login.example.com","client_id":"heartbeat","client_secret":"..."}]'

const newUsers = z.strictObject({ scope: z.enum(SCOPES) })

export const signInProviders = entriesOf({
  fields: {
    name: z.string('must be text').regex(NAME, 'must be 1 to 32 letters, digits and -'),
    issuer: issuerUrl,
    client_id: identifier,
    client_secret: textOf(SECRET_LENGTH),
    users: usersBySubject,
    create_users: z
      .custom<z.output<typeof newUsers>>(
        (value) => newUsers.safeParse(value).success,
        `must be an object such as {"scope":"read"}, with a scope of ${SCOPES.join(', ')}`,
      )
      .optional(),
  },
  example: EXAMPLE,
  unique: ['name', 'choose another'],
}).transform((entries) =>
  entries.map(({ client_id: clientId, client_secret: clientSecret, create_users, ...entry }): SignInProvider => {
    return { ...entry, clientId, clientSecret, newUserScope: create_users?.scope ?? null }
  }),
)
