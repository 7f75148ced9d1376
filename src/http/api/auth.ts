/** Log-in and log-out, for browsers and command lines (design, section 3.4). Without a credential; logIn has its own throttle. */

import { PASSWORD_LOGIN_OFF } from '../../auth/errors.ts'
import { logIn as enter, logOut as leave, type TokenPair as Pair, refresh as renew } from '../../auth/log-in.ts'
import { AppError } from '../../domain/errors.ts'
import { LogIn, RefreshToken, TokenPair } from './auth.schema.ts'
import { inCamelCase } from './present.ts'
import { openEndpoint } from './route.ts'

export const logIn = openEndpoint({
  summary: 'Log in',
  body: LogIn,
  response: TokenPair,
  errors: ['unauthenticated', 'forbidden', 'too_many_requests'],
  async handle({ context, tokens, isPasswordLoginOn, body, address }) {
    if (!isPasswordLoginOn) throw new AppError('forbidden', PASSWORD_LOGIN_OFF)
    return toPair(await enter(context, tokens, { ...body, address }))
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
    return toPair(await renew(context, tokens, { ...inCamelCase(body), address }))
  },
})

export const logOut = openEndpoint({
  summary: 'Log out: the session ends, with its access and refresh tokens',
  body: RefreshToken,
  handle: ({ context, body, address }) => leave(context, { ...inCamelCase(body), address }),
})

const toPair = (pair: Pair) => ({ ...pair, tokenType: 'Bearer' as const, expiresIn: pair.expiresInSeconds })
