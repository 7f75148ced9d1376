/**
 * Texts in manifests and commands that a user copies. A string of JSON is a string of YAML once the characters are
 * escaped that YAML 1.1 (kubectl) folds or rejects.
 */

/** What YAML takes for line breaks or rejects, and what does not show: it must not change how a manifest looks. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu

/** In double quotes, on one line, for every reader of YAML. */
export function yamlText(text: string): string {
  return JSON.stringify(text).replace(UNSEEN, (character) => {
    const code = character.codePointAt(0)!
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** As one word of a POSIX shell. */
export function quoteForShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The same without quotes where none are needed, as names of Kubernetes: easier to read. */
export function wordForShell(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : quoteForShell(text)
}
