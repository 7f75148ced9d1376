/** What axe-core finds wrong with a page. */

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** One line for each violation: its rule, and the elements. Every rule of axe-core counts. */
export async function findViolations(page: Page): Promise<string[]> {
  // By the debugger's protocol: the content security policy lets no script of others into the page.
  const isThere = await page.evaluate(() => 'axe' in globalThis)
  if (!isThere) await page.evaluate(AXE)
  const results = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as AxeResults
  return results.violations.map(
    ({ id, help, nodes }) =>
      `${id} (${help}): ${nodes.map(({ html, any }) => `${html} ${any[0]?.message ?? ''}`).join(' | ')}`,
  )
}
