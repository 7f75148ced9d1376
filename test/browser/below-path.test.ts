/** The dashboard below a path of its host, in a browser. */

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../support/app.ts'
import { type PathProxy, startPathProxy } from '../support/path-proxy.ts'
import { launchBrowser, openPage } from './support/browser.ts'

const SITE = '/ops/heartbeat'
let browser: Browser
beforeAll(async () => {
  browser = await launchBrowser()
}, 120_000)
afterAll(() => browser?.close())

describe.each(['rest', 'all'] as const)('behind a proxy that sends on: %s of the path', (sends) => {
  let proxy: PathProxy
  let app: TestApp
  beforeAll(async () => {
    proxy = await startPathProxy({ path: SITE, sends })
    app = await startTestApp({ environment: { BASE_URL: `${proxy.origin}${SITE}/api/v1` } })
    proxy.target = new URL(app.listeningApiUrl).origin
  })
  afterAll(async () => {
    await app?.close()
    await proxy?.[Symbol.asyncDispose]()
  })

  it('a user logs in, makes a check with a schedule in words, and sees its ping', async () => {
    await using watched = await openPage(browser, proxy.origin)
    const { page, faults } = watched
    await page.goto(`${SITE}/checks/new`)
    await page.getByLabel('E-mail').fill(app.logIn.email)
    await page.getByLabel('Password').fill(app.logIn.password)
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.waitForURL(`**${SITE}/checks/new`)
    await page.getByLabel('Name').fill('Below a path')
    await page.getByLabel('Schedule').first().fill('0 2 * * *')
    await page.locator('#preview').getByText('At 02:00').waitFor()
    await page.getByRole('button', { name: 'Create check' }).click()
    await page.waitForURL(`**${SITE}/checks/*/how`)
    const id = /checks\/([0-9a-f-]{36})/.exec(page.url())![1]!
    const { public_id: publicId } = (await app.client.get(`/checks/${id}`)).body
    // The page waits for what changes, at the address below the path.
    const live = page.waitForRequest((request) => new URL(request.url()).pathname === `${SITE}/live`)
    await page.goto(`${SITE}/checks/${id}`)
    expect(new URL((await live).url()).searchParams.get('check')).toBe(id)
    await fetch(`${app.pingUrl}/ping/${publicId}/fail`, { method: 'POST' })
    await page.locator('.status-down').first().waitFor()
    // The script reads a page of another session as the log-in, and goes there.
    await watched.context.clearCookies()
    await fetch(`${app.pingUrl}/ping/${publicId}`, { method: 'POST' })
    await page.waitForURL(`**${SITE}/login?next=*`, { timeout: 60_000 })
    expect(faults).toEqual([])
  })
})
