/** The errors of credentials. Each says what was received, shows the right header, and never repeats the credential. */

import { AppError } from '../domain/errors.ts'

const HEADER = 'send the header "Authorization: Bearer <API key or access token>"'
export const PASSWORD_LOGIN_OFF = 'password login is off: use the identity provider'

/** Only these are named: the first word may also be a key or a token. */
const OTHER_SCHEMES = ['Basic', 'Digest', 'Negotiate', 'NTLM', 'Token', 'ApiKey', 'Api-Key', 'Key', 'DPoP', 'OAuth']

export const rejected = (message: string): AppError => new AppError('unauthenticated', message)

export const noCredential = () => rejected(`no credential was received: ${HEADER}`)

/** `authorization`: the value of the header, which does not begin with `Bearer`. */
export function otherScheme(authorization: string): AppError {
  const [first = '', rest] = authorization.trim().split(/ +/)
  const scheme = OTHER_SCHEMES.find((name) => name.toLowerCase() === first.toLowerCase())
  const what = rest === undefined ? 'no scheme' : `the scheme ${scheme ?? 'of another kind'}`
  return rejected(`the credential has ${what}, not Bearer: ${HEADER}`)
}

/** Also for the right prefix with a wrong secret: who has guessed a prefix learns nothing. */
export const unknownKey = () => rejected(`the credential is an unknown or revoked API key: ${HEADER}`)

/** For a text that is no key, and for a token that was forged or changed, or whose user is gone. */
export const unknownToken = () =>
  rejected(`the credential is neither an API key nor an access token that is valid here: log in again, and ${HEADER}`)

export const endedSession = () =>
  rejected(`the credential is an access token of a session that has ended: log in again, and ${HEADER}`)

/** For a valid token of an issuer that belongs to no user here. */
export const unknownUser = () =>
  rejected(
    'no user belongs to this token: ask an administrator to add a user with the e-mail address that the issuer has verified, or to list the subject in OIDC_ISSUERS',
  )

/** Only for a caller that has proven to hold the credential. */
export const expiredCredential = (what: string, remedy: string) =>
  rejected(`this ${what} has expired: ${remedy}, and ${HEADER}`)
