/** Longest address that SMTP can carry (RFC 5321, section 4.5.3.1.3, less the angle brackets). */
const LONGEST = 254
/** Deliberately wide: a name, one `@`, and a host of labels, without white space and unprintable characters. */
const EMAIL = /^[^\s\p{C}@<>"]{1,64}@[^\s\p{C}@.<>"]+(?:\.[^\s\p{C}@.<>"]+)*$/u
const ASCII = /^[\0-\x7f]*$/

/** Whether the text has the form of an e-mail address. */
export function isEmail(text: string): boolean {
  return text.length <= LONGEST && EMAIL.test(text)
}

export const USER_EMAIL_RULE = 'must be an e-mail address'
/** For an address with other characters, whose capitals differ between programs: for PostgreSQL, `İ` is an `i`. */
export const ASCII_EMAIL_RULE =
  'must be an e-mail address of ASCII characters: write an international domain in punycode (xn--...)'

export function isAscii(text: string): boolean {
  return ASCII.test(text)
}

/**
 * The address of a user as it is stored and looked up: in lower case. Null unless it is an address of ASCII characters. The only place that
 * lower-cases addresses.
 */
export function toUserEmail(text: string): string | null {
  return isEmail(text) && isAscii(text) ? text.toLowerCase() : null
}
