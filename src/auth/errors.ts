import { AppError } from '../domain/errors.ts'

/** One text for a missing, malformed, unknown or revoked credential, so that an attacker cannot tell which one it is. */
export function unknownCredential(): AppError {
  return new AppError(
    'unauthenticated',
    'missing or unknown credential: send the header "Authorization: Bearer" with an API key or an access token',
  )
}

/** For a valid token of an issuer that belongs to no user here. */
export function unknownUser(): AppError {
  return new AppError(
    'unauthenticated',
    'no user belongs to this token: ask an administrator to add a user with the e-mail address that the issuer has verified, or to list the subject in OIDC_ISSUERS',
  )
}

/** Only for a caller that has proven to hold the credential. */
export function expiredCredential(what: string, remedy: string): AppError {
  return new AppError('unauthenticated', `this ${what} has expired: ${remedy}`)
}
