import { z } from 'zod'
import * as field from './fields.ts'

/** The form of the address and the password is not checked: a malformed one is just a wrong one. */
export const LogIn = z
  .strictObject({
    email: field.credential('E-mail address.'),
    password: field.credential('Password.'),
  })
  .meta({ id: 'LogIn' })

export const RefreshToken = z
  .strictObject({ refresh_token: field.credential('The refresh token of the latest pair.') })
  .meta({ id: 'RefreshToken' })

export const TokenPair = z
  .object({
    access_token: z.string().meta({ description: 'For `Authorization: Bearer`.' }),
    token_type: z.literal('Bearer'),
    expires_in: z.int().meta({ description: 'Seconds until the access token expires.' }),
    refresh_token: z.string().meta({ description: 'Exchange it for the next pair. It can be used once.' }),
  })
  .meta({ id: 'TokenPair' })
