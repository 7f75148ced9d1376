/** Reads forms of pages without a browser. */

/** The fields of the first form of a page that posts to `action`, by name, with the values that a browser would send. */
export function readForm(page: string, action: string): Record<string, string> {
  const [, form] = new RegExp(`<form[^>]* action="${action}"[^>]*>([\\s\\S]*?)</form>`).exec(page) ?? []
  if (form === undefined) throw new Error(`there is no form with the action ${action}:\n${page}`)
  return readFields(form)
}

/** The fields in a part of a page. */
export function readFields(part: string): Record<string, string> {
  const fields: Record<string, string> = {}
  for (const [, attributes = ''] of part.matchAll(/<input((?:\s[\w-]+(?:="[^"]*")?)*)\s*>/g)) {
    const name = attributeOf(attributes, 'name')
    const isLeftOut = attributeOf(attributes, 'type') === 'checkbox' && !/\schecked(\s|$)/.test(attributes)
    if (name !== null && !isLeftOut) fields[name] = attributeOf(attributes, 'value') ?? ''
  }
  // A line break at the beginning is not part of the text.
  for (const [, attributes = '', text = ''] of part.matchAll(/<textarea([^>]*)>([\s\S]*?)<\/textarea>/g))
    fields[attributeOf(attributes, 'name')!] = decodeHtml(text.replace(/^\n/, ''))
  for (const [, attributes = '', options = ''] of part.matchAll(/<select([^>]*)>([\s\S]*?)<\/select>/g)) {
    const [chosen] = [/<option([^>]*)\sselected/, /<option([^>]*)>/].map((choice) => choice.exec(options)?.[1])
    fields[attributeOf(attributes, 'name')!] = attributeOf(chosen ?? '', 'value') ?? ''
  }
  return fields
}

function attributeOf(attributes: string, name: string): string | null {
  const [, value] = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(attributes) ?? []
  return value === undefined ? null : decodeHtml(value)
}

/** A name that attacks: a mark, quotes, a change of direction, and letters of several units. */
export const HOSTILE = `"><script>alert(1)</script>'\u202e${'🦊'.repeat(50)}`

/** What a reader sees of a page: without marks, with single spaces. */
export const readText = (page: string): string =>
  page
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replace(/\s+/g, ' ')

const ENTITIES: Record<string, string> = { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'" }
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (letter) => Object.keys(ENTITIES).find((entity) => ENTITIES[entity] === letter)!)
}
export function decodeHtml(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#39);/g, (entity) => ENTITIES[entity]!)
}
