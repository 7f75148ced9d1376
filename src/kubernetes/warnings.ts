/** `299 - "text"`: code, agent, quoted text (RFC 7234, section 5.5). */
const WARNING = /\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g
/** Texts may hold names of objects. This only prevents that a text is reported with every request. */
const MAX_TEXTS = 256

/** Returns a reader of `Warning` headers that calls `onWarning` once for each text. */
export function createWarningReader(onWarning: ((text: string) => void) | undefined) {
  const said = new Set<string>()
  return (header: string | string[] | undefined): void => {
    if (header === undefined || onWarning === undefined) return
    for (const value of [header].flat()) {
      for (const [, quoted] of value.matchAll(WARNING)) {
        const text = quoted!.replace(/\\(.)/g, '$1')
        if (said.has(text)) continue
        if (said.size >= MAX_TEXTS) said.clear()
        said.add(text)
        onWarning(text)
      }
    }
  }
}
