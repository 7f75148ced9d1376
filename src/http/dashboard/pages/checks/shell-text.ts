/** Texts in commands of a POSIX shell. */

/** As one word. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The same without quotes where none are needed, as names of Kubernetes: easier to read. */
export function wordForShell(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : quoteForShell(text)
}
