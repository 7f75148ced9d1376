import { AppError } from '../domain/errors.ts'

/** One text for every reason: what is missing, malformed, unknown or revoked is nothing that a guesser should learn. */
export function unknownCredential(): AppError {
  return new AppError(
    'unauthenticated',
    'missing or unknown credential: send the header "Authorization: Bearer" with an API key or an access token',
  )
}

/** Of a token that its issuer has signed: it is good, and there is nobody here for it. */
export function unknownUser(): AppError {
  return new AppError(
    'unauthenticated',
    'no user here belongs to this token: an administrator adds the user with the e-mail address that the issuer has verified, or names the subject under OIDC_ISSUERS',
  )
}

/** Only for somebody who has proven to hold the credential: saying so helps them and tells a guesser nothing. */
export function expiredCredential(what: string, remedy: string): AppError {
  return new AppError('unauthenticated', `this ${what} has expired: ${remedy}`)
}
