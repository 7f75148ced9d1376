/** The text of an API key: `hbk_<prefix>_<secret>`. Bounded and anchored, so that a long text costs little. */

/** Keys of earlier releases may have a secret of 6 characters, from BOOTSTRAP_API_KEY. */
const API_KEY = /^hbk_([0-9A-Za-z]{1,32})_([0-9A-Za-z_-]{6,128})$/
const SECRET_LENGTH = 32

/** The prefix; null when the text does not have the form of an API key. */
export function readKeyPrefix(text: string): string | null {
  return API_KEY.exec(text)?.[1] ?? null
}

/** What is wrong with a key that people choose, in words that follow its name; null when nothing is. Quotes no value. */
export function findBootstrapKeyFault(text: string): string | null {
  const secret = API_KEY.exec(text)?.[2] ?? ''
  return secret.length >= SECRET_LENGTH
    ? null
    : `must have the form hbk_<prefix>_<secret>: 1-32 letters or digits, and ${SECRET_LENGTH}-128 letters, digits, - or _`
}
