/** HTML: the `html` template escapes every value that is not HTML itself. The only home of hono/html in http. */

import { raw, html as template } from 'hono/html'

/** Text that is HTML already. */
export type Html = ReturnType<typeof raw>

/** What a template takes: text is escaped; null, undefined and booleans are left out. */
export type Part = Html | string | number | boolean | null | undefined | readonly Part[]

/** Quote every attribute: `class="${name}"`. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  // Without promises among its parts the template is complete at once.
  return template(strings, ...(parts as unknown[])) as Html
}

/** A text of a job, a user or a manifest, whose direction does not change the text around it. */
export function isolated(text: string): Html {
  return html`<bdi>${text}</bdi>`
}

/** SVG that a library made. Never for text that a user, a job or a manifest can set. */
export const trusted = (svg: string): Html => raw(svg)
