/** Reads the HTML of chats as strictly as they do: known tags and attributes, closed in order, and nothing but escapes after `&`. */

/** The attributes of each tag. */
export type Tags = Readonly<Record<string, readonly string[]>>

export interface Element {
  readonly tag: string
  readonly attributes: Readonly<Record<string, string>>
  readonly text: string
}

export interface Markup {
  /** Without tags and escapes. */
  readonly text: string
  /** In the order of their ends. */
  readonly elements: readonly Element[]
  /** The text outside of `pre` and `a`, where chats look for links and mentions. */
  readonly prose: string
}

const TOKEN =
  /<(?<name>[a-z]+)(?<attributes>(?: [a-z]+="[^"<>]*")*)>|<\/(?<end>[a-z]+)>|&(?<character>amp|lt|gt|quot);|(?<plain>[^<&]+)/gy
const CHARACTERS: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"' }

/** Throws for what is not well-formed, and for other tags. `br` has no end. */
export function readMarkup(html: string, tags: Tags): Markup {
  const elements: Element[] = []
  const open: { tag: string; attributes: Record<string, string>; from: number }[] = []
  let text = ''
  let prose = ''
  const add = (more: string) => {
    text += more
    if (!open.some(({ tag }) => tag === 'pre' || tag === 'a')) prose += more
  }
  let at = 0
  for (const { groups, 0: token, index } of html.matchAll(TOKEN)) {
    if (index !== at) break
    at += token.length
    const { name, attributes = '', end, character, plain } = groups!
    if (plain !== undefined) add(plain)
    if (character !== undefined) add(CHARACTERS[character]!)
    if (name === 'br') add('\n')
    else if (name !== undefined)
      open.push({ tag: name, attributes: readAttributes(name, attributes, tags), from: text.length })
    if (end === undefined) continue
    const last = open.pop()
    if (last?.tag !== end) throw new Error(`</${end}> ends ${last?.tag ?? 'nothing'}`)
    elements.push({ tag: end, attributes: last.attributes, text: text.slice(last.from) })
  }
  if (at !== html.length) throw new Error(`can't parse: ${html.slice(at, at + 50)}`)
  if (open.length > 0) throw new Error(`no end of ${open.at(-1)!.tag}`)
  return { text, elements, prose }
}

function readAttributes(tag: string, written: string, tags: Tags): Record<string, string> {
  const names = tags[tag]
  if (names === undefined) throw new Error(`unsupported tag ${tag}`)
  const attributes: Record<string, string> = {}
  for (const [, name, value] of written.matchAll(/ ([a-z]+)="([^"]*)"/g)) {
    if (!names.includes(name!)) throw new Error(`unsupported attribute ${name}`)
    attributes[name!] = value!.replace(/&(\w+);/g, (_, character: string) => CHARACTERS[character]!)
  }
  return attributes
}

/**
 * The first link or mention, or null, of the prose of a message. Below `About this check:` http and https addresses are
 * links, as a person has written them.
 */
export function findForeignLink(prose: string): string | null {
  const [untrusted, description = ''] = prose.split('About this check:')
  const foreign = /(?<![\p{L}\p{N}_])@[\p{L}\p{N}_]+|(?<!https?):\/\//iu
  return findLink(untrusted!) ?? foreign.exec(description.replace(/https?:\/\/[^\s<>"\u200b]+/giu, ''))?.[0] ?? null
}

/**
 * What Telegram (`find_entities` in `td/telegram/MessageEntity.cpp`) or Element (linkify) would make a mention, a command or a link of:
 * the first one, or null.
 */
export function findLink(prose: string): string | null {
  const links =
    /@[\p{L}\p{N}_]+|#[\p{L}\p{N}_]+|\$[A-Z]+|(?<![\p{L}\p{N}_/])\/[a-z0-9_]+|[a-z]+:\/\/|[\p{L}\p{N}_-]+\.[\p{L}\p{N}]+|\+\d+/iu
  return links.exec(prose)?.[0] ?? null
}
