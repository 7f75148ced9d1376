/** `299 - "text"`: code, agent, quoted text (RFC 7234, section 5.5). */
const WARNING = /\b\d{3} \S+ "((?:[^"\\]|\\.)*)"/g
/** Texts may hold names of objects; this is only for not saying the same thing with every request. */
const MOST_REMEMBERED = 256

/** Reads `Warning` headers, and gives each text on once. */
export function createWarningReader(onWarning: ((text: string) => void) | undefined) {
  const said = new Set<string>()
  return (header: string | string[] | undefined): void => {
    if (header === undefined || onWarning === undefined) return
    for (const value of [header].flat()) {
      for (const [, quoted] of value.matchAll(WARNING)) {
        const text = quoted!.replace(/\\(.)/g, '$1')
        if (said.has(text)) continue
        if (said.size >= MOST_REMEMBERED) said.clear()
        said.add(text)
        onWarning(text)
      }
    }
  }
}
