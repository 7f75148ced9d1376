/** The text of an API key: `hbk_<prefix>_<secret>`. Bounded and anchored, so that a long text costs little. */

const API_KEY = /^hbk_([0-9A-Za-z]{1,32})_[0-9A-Za-z_-]{32,128}$/

/** The prefix; null when the text does not have the form of an API key. */
export function readKeyPrefix(text: string): string | null {
  return API_KEY.exec(text)?.[1] ?? null
}

/** What is wrong with a key that people choose, in words that follow its name; null when nothing is. Quotes no value. */
export function findBootstrapKeyFault(text: string): string | null {
  return API_KEY.test(text)
    ? null
    : 'must have the form hbk_<prefix>_<secret>: 1-32 letters or digits, and 32-128 letters, digits, - or _'
}
