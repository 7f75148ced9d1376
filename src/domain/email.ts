/** Longest address that SMTP can carry (RFC 5321, section 4.5.3.1.3, less the angle brackets). */
const LONGEST = 254
/** Deliberately wide: a name, one `@`, and a host of labels, without white space and unprintable characters. */
const EMAIL = /^[^\s\p{C}@<>"]{1,64}@[^\s\p{C}@.<>"]+(?:\.[^\s\p{C}@.<>"]+)*$/u

/** Whether the text has the form of an e-mail address. */
export function isEmail(text: string): boolean {
  return text.length <= LONGEST && EMAIL.test(text)
}
