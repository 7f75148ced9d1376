/** Longest address that SMTP can carry (RFC 5321, section 4.5.3.1.3, less the angle brackets). */
const LONGEST = 254
/** Deliberately wide: one `@`, a name, a host of labels; no blanks and nothing unprintable. Whether mail arrives, only mail can tell. */
const EMAIL = /^[^\s\p{C}@<>"]{1,64}@[^\s\p{C}@.<>"]+(?:\.[^\s\p{C}@.<>"]+)*$/u

export function isEmail(text: string): boolean {
  return text.length <= LONGEST && EMAIL.test(text)
}
