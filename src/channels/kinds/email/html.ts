/** A template tag for HTML that escapes every value, except HTML made by the same tag. */

export interface Html {
  readonly html: string
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Values may stand between tags and in quoted attributes only. */
export function html(strings: TemplateStringsArray, ...values: readonly (string | Html)[]): Html {
  return { html: String.raw({ raw: strings }, ...values.map(render)) }
}

function render(value: string | Html): string {
  return typeof value === 'string' ? value.replace(/[&<>"']/g, (character) => ENTITIES[character]!) : value.html
}
