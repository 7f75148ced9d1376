/** Reads Discord's Markdown as its clients do (its rules are those of the library simple-markdown, in their order). */

export interface Read {
  /** What people see. */
  readonly text: string
  /** Each piece that is not shown as it is: mark-up, mentions, links, emoji. Without code blocks. */
  readonly marks: readonly string[]
}

const CODE = /```(?:[a-z0-9_+\-.#]+?\n)?\n*([^\n][\s\S]*?)\n*```/iy
const ESCAPE = /\\([^0-9A-Za-z\s])/y
const MARKS = [
  /(?:https?|steam|discord):\/\/[^\s<]+[^<.,:;"'\]\s]/y,
  /<(?:@[!&]?\d+|#\d+|\/[^>]+:\d+|a?:\w+:\d+|t:-?\d+(?::\w)?|id:\w+|\w+:\/?[^\s>]+|\+\d+|[^\s<>@]+@[^\s>]+)>/y,
  /@(?:everyone|here)/y,
  /:(?:[^\s:]*[a-z][^\s:]*|\d{3,}):/iy,
  /\[[^\]]+\]\([^)]+\)/y,
  /(\*\*|__|\*|_|~~|\|\||`+)(?=[^\s`])[\s\S]*?[^\s]\1/y,
  /(?<=^\s*)(?:#{1,3}|-#|>{1,3}|[-*+]|\d+\.)\s/my,
]

export function readMarkdown(source: string): Read {
  const marks: string[] = []
  let text = ''
  for (let at = 0; at < source.length; ) {
    const read = (rule: RegExp) => {
      rule.lastIndex = at
      return rule.exec(source)
    }
    const code = read(CODE)
    const escaped = code ?? read(ESCAPE)
    const mark = escaped === null ? MARKS.map(read).find((found) => found !== null) : undefined
    const piece = escaped?.[0] ?? mark?.[0] ?? source[at]!
    if (mark !== undefined) marks.push(piece)
    text += escaped?.[1] ?? (/^<https?:/.test(piece) ? piece.slice(1, -1) : piece)
    at += piece.length
  }
  return { text, marks }
}
