import { z } from 'zod'
import * as field from './fields.ts'

/** The form of the address and the password is not checked: a malformed one is just a wrong one. */
export const LogIn = field.strictShape('LogIn', {
  email: field.credential('E-mail address.'),
  password: field.credential('Password.'),
})

export const RefreshToken = field.strictShape('RefreshToken', {
  refresh_token: field.credential('The refresh token of the latest pair.'),
})

export const TokenPair = field.shape('TokenPair', {
  access_token: z.string().meta({ description: 'For `Authorization: Bearer`.' }),
  token_type: z.literal('Bearer'),
  expires_in: z.int().meta({ description: 'Seconds until the access token expires.' }),
  refresh_token: z.string().meta({ description: 'Exchange it for the next pair. It can be used once.' }),
})
