/** Log-in and log-out, for browsers and command lines (design, section 3.4). Without a credential; logIn has its own throttle. */

import { z } from 'zod'
import { PASSWORD_LOGIN_OFF } from '../../auth/errors.ts'
import * as verbs from '../../auth/log-in.ts'
import { AppError } from '../../domain/errors.ts'
import * as field from './fields.ts'
import { inCamelCase } from './present.ts'
import { openEndpoint } from './route.ts'

export const RefreshToken = field.strictShape('RefreshToken', {
  refresh_token: field.credential('The refresh token of the latest pair.'),
})

export const TokenPair = field.shape('TokenPair', {
  access_token: field.string('For `Authorization: Bearer`.'),
  token_type: z.literal('Bearer'),
  expires_in: field.integer('Seconds until the access token expires.'),
  refresh_token: field.string('Exchange it for the next pair. It can be used once.'),
})

export const logIn = openEndpoint({
  summary: 'Log in',
  // The form of the address and the password is not checked: a malformed one is just a wrong one.
  body: field.strictShape('LogIn', {
    email: field.credential('E-mail address.'),
    password: field.credential('Password.'),
  }),
  response: TokenPair,
  errors: ['unauthenticated', 'forbidden', 'too_many_requests'],
  async handle({ context, tokens, isPasswordLoginOn, body, address }) {
    if (!isPasswordLoginOn) throw new AppError('forbidden', PASSWORD_LOGIN_OFF)
    return verbs.logIn(context, tokens, { ...body, address })
  },
})

export const refresh = openEndpoint({
  summary:
    'Exchange a refresh token for the next pair, until 90 days after the log-in; a token that was used before ends the whole log-in',
  body: RefreshToken,
  response: TokenPair,
  errors: ['unauthenticated', 'too_many_requests'],
  async handle({ context, tokens, isPasswordLoginOn, body, address }) {
    // Each session of the API began with a password.
    if (!isPasswordLoginOn) throw new AppError('unauthenticated', PASSWORD_LOGIN_OFF)
    return verbs.refresh(context, tokens, { ...inCamelCase(body), address })
  },
})

export const logOut = openEndpoint({
  summary: 'Log out: the session ends, with its access and refresh tokens',
  body: RefreshToken,
  handle: ({ context, body, address }) => verbs.logOut(context, { ...inCamelCase(body), address }),
})
