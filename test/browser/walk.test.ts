/** Every page in every look: both themes, wide and narrow, with and without scripts. */

import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findViolations } from './support/axe.ts'
import { findOverflow, type Look } from './support/browser.ts'
import { openStage, type Stage } from './support/stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
}, 120_000)
afterAll(() => stage?.[Symbol.asyncDispose]())

const LOOKS = (['light', 'dark'] as const).flatMap((theme) =>
  [1_280, 360].flatMap((width) => [true, false].map((script) => ({ theme, width, script }))),
)

/** From one page to the next by a click, so that each page is one that a user finds. */
const STEPS: readonly [what: string, click: (page: Page) => Promise<unknown>][] = [
  ['checks', (page) => follow(page, 'Checks')],
  ['a filtered list', (page) => follow(page, '2 Down')],
  ['a list without a match', (page) => search(page, 'no such check')],
  ['all checks again', (page) => follow(page, 'Clear the filter')],
  ['a check that failed', (page) => follow(page, 'Invoice export')],
  [
    'the manifest of a check of Kubernetes',
    (page) => leave(page, () => page.locator('main').getByRole('link', { name: 'Settings' }).click()),
  ],
  ['a check that is late', (page) => follow(page, 'Checks', 'Data warehouse sync')],
  ['how it pings', (page) => follow(page, 'How to ping')],
  ['a check that runs', (page) => follow(page, 'Checks', 'Fraud model training')],
  ['a paused check', (page) => follow(page, 'Checks', 'Purge of old sessions')],
  ['the form of a check', (page) => follow(page, 'Edit')],
  ['the same form with a fault', (page) => submit(page, 'Every', 'sometimes', 'Save')],
  ['a new check', (page) => follow(page, 'Checks', 'Label printer of the warehouse')],
  ['what is lost with it', (page) => follow(page, 'Delete')],
  ['the form of a new check', (page) => follow(page, 'Checks', 'New check')],
  ['channels', (page) => follow(page, 'Channels')],
  ['a channel', (page) => follow(page, 'Ticket system')],
  ['kinds of channels', (page) => follow(page, 'Channels', 'Add a channel')],
  ['the form of a webhook', (page) => follow(page, 'Webhook')],
  ['silences', (page) => follow(page, 'Silences')],
  ['the form of a silence', (page) => follow(page, 'New silence')],
  ['the form of a maintenance window', (page) => follow(page, 'Again and again instead, as a maintenance window')],
  ['the deletion of a silence', (page) => createSilence(page)],
  ['deliveries', (page) => follow(page, 'Deliveries')],
  ['settings', (page) => follow(page, 'Settings')],
  ['the service', (page) => follow(page, 'Service')],
  ['an unknown page', (page) => page.goto('/nothing')],
  ['the log-in', (page) => follow(page, 'Log out')],
]

/** Clicks links or buttons, one after the other. */
async function follow(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const link = page.getByRole('link', { name, exact: true })
    await leave(page, () =>
      link
        .or(page.getByRole('button', { name, exact: true }))
        .first()
        .click(),
    )
  }
}

async function createSilence(page: Page): Promise<void> {
  const values = { 'Begins at': '* * * * *', Lasts: '2 hours', Tag: 'w'.repeat(50), Comment: 'w'.repeat(200) }
  for (const [label, value] of Object.entries(values)) await page.getByLabel(label, { exact: true }).fill(value)
  await follow(page, 'Create the silence', 'Silences')
  await leave(page, () => page.locator('main th a').first().click())
  await follow(page, 'Delete')
}

async function search(page: Page, text: string): Promise<void> {
  await page.getByRole('searchbox').fill(text)
  await leave(page, () => page.getByRole('button', { name: 'Show' }).click())
}

async function submit(page: Page, label: string, text: string, button: string): Promise<void> {
  await page.getByLabel(label, { exact: true }).fill(text)
  await leave(page, () => page.getByRole('button', { name: button }).click())
}

/** Resolves when the next page is there. */
async function leave(page: Page, click: () => Promise<void>): Promise<void> {
  await Promise.all([page.waitForEvent('load'), click()])
}

/** Chromium reports a page with another status than 200 as an error of its own. */
const isStatus = (fault: string) => /^console: Failed to load resource: .* status of 4\d\d/.test(fault)

describe.each(LOOKS)('in a $theme window of $width pixels, scripts: $script', (look: Look) => {
  it('each page leads to the next, fits, and is accessible', { timeout: 120_000 }, async () => {
    // Of its own, since it ends with the walk.
    await using watched = await stage.logIn('admin', look)
    const { page, faults } = watched
    const found: string[] = []
    for (const [what, click] of STEPS) {
      const error = await click(page).catch((reason: Error) => reason)
      if (error instanceof Error) {
        found.push(`${what}: not reached from ${page.url()}: ${error.message}`)
        break
      }
      found.push(...(await findOverflow(page)).map((element) => `${what}: moves sideways because of ${element}`))
      // axe-core needs scripts itself; the document is the same without.
      if (look.script) found.push(...(await findViolations(page)).map((violation) => `${what}: ${violation}`))
    }
    expect(found).toEqual([])
    expect(faults.filter((fault) => !isStatus(fault))).toEqual([])
  })
})

describe('at 320 pixels, which is 1280 at a zoom of 400 percent', () => {
  it('no page moves sideways', async () => {
    await using watched = await stage.logIn('admin', { width: 320 })
    for (const [what, click] of STEPS) {
      await click(watched.page)
      expect(await findOverflow(watched.page), what).toEqual([])
    }
  })
})
