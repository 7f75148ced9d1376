/** The rules for a new password. Passwords that were set under older rules stay valid. */

import { COMMON_PASSWORDS } from './common-passwords.ts'

/** Parameters of scrypt. */
export interface PasswordCost {
  readonly logN: number
  readonly r: number
  readonly p: number
}

/** In code points. */
export const PASSWORD_LENGTH = { min: 12, max: 200 } as const
/** Of a password that is given for a log-in. A longer one is wrong, whatever was stored, and is neither normalised nor hashed. */
export const GIVEN_LENGTH = 1_024
export const COMMON_PASSWORD_RULE = 'is one of the most common passwords: choose another, such as four random words'

/**
 * What is wrong with a new password of the user with this e-mail address, in words that follow the field's name; null when nothing is. `email`
 * null: the address is not known here.
 */
export function findPasswordFault(password: string, email: string | null): string | null {
  const { min, max } = PASSWORD_LENGTH
  // A code point has one or two units, so a text of more units is too long without counting.
  const length = password.length > max * 2 ? Number.POSITIVE_INFINITY : [...password].length
  if (!password.isWellFormed() || length < min || length > max) return `must be text of ${min} to ${max} characters`
  // In the form in which passwords are hashed.
  const folded = password.normalize('NFKC').toLowerCase()
  if (COMMON_PASSWORDS.has(folded)) return COMMON_PASSWORD_RULE
  return folded === email?.toLowerCase() ? 'must not be the e-mail address' : null
}
