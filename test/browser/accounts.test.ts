/** The log-in with a real identity provider, and the settings, in a browser. */

import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../support/app.ts'
import { CLIENT, startIdentityProvider, type TestProvider } from '../support/identity-provider.ts'
import { findFreePort } from '../support/ports.ts'
import { findViolations } from './support/axe.ts'
import { findOverflow, type Look, launchBrowser, openPage } from './support/browser.ts'

const PASSWORD = 'a password of the test'

let app: TestApp
let provider: TestProvider
let browser: Browser
let origin: string
beforeAll(async () => {
  const port = await findFreePort()
  origin = `http://127.0.0.1:${port}`
  provider = await startIdentityProvider({ redirectUris: [`${origin}/login/Example/callback`] })
  const entry = { name: 'Example', issuer: provider.url, ...CLIENT, create_users: { scope: 'admin' } }
  app = await startTestApp({ environment: { API_PORT: port, SIGN_IN: JSON.stringify([entry]) } })
  browser = await launchBrowser()
}, 120_000)
afterAll(async () => {
  await browser?.close()
  await app?.close()
  await provider?.close()
})

/** A page that has signed in with the provider, and was led to `path`. */
async function signIn(path: string, look: Look = {}) {
  const watched = await openPage(browser, origin, look)
  await watched.page.goto(path)
  await watched.page.getByRole('link', { name: 'Sign in with Example' }).click()
  await watched.page.waitForURL(`${origin}${path}`)
  // The log-in of the provider is not ours.
  watched.faults.length = 0
  return watched
}

describe.each([true, false])('scripts: %s', (script) => {
  it('a user signs in, creates a user and a key, and revokes it', async () => {
    provider.account = { sub: 'ann', email: 'ann@example.com', email_verified: true }
    await using watched = await signIn('/settings', { script })
    const { page, faults } = watched
    await page.getByText('You are ann@example.com, with the scope admin.').waitFor()
    const users = page.getByRole('region', { name: 'Users' })
    await users.getByLabel('E-mail').fill(`bob-${script}@example.com`)
    await users.getByLabel('Password').fill('short')
    await users.getByRole('button', { name: 'Create the user' }).click()
    await page.getByText('Password must be text of 12 to 200 characters.').waitFor()
    expect(await page.getByLabel('E-mail').inputValue()).toBe(`bob-${script}@example.com`)
    expect(await page.getByLabel('Password').inputValue()).toBe('')
    await page.getByLabel('Password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Create the user' }).click()
    await page.getByText('The user is created.').waitFor()
    const keys = page.getByRole('region', { name: 'API keys' })
    await keys.getByLabel('Name').fill(`CI ${script}`)
    await keys.getByRole('button', { name: 'Create the key' }).click()
    const key = await page.locator('#new-key').textContent()
    expect((await app.client.get('/me', { key: key })).status).toBe(200)
    await page.getByRole('link', { name: 'I have copied it' }).click()
    await page.getByRole('link', { name: `Revoke CI ${script}` }).click()
    await page.getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('The API key is revoked.').waitFor()
    expect((await app.client.get('/me', { key: key })).status).toBe(401)
    // Chromium logs the 422 of the short password.
    expect(faults.filter((fault) => !fault.includes('422'))).toEqual([])
  })
})

it('what was typed is there again after a log-in in between, except the password', async () => {
  await using watched = await signIn('/settings')
  const { page, context } = watched
  await page.getByText('Create a user').click()
  await page.getByLabel('E-mail').fill('eve@example.com')
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await context.clearCookies({ name: 'heartbeat_session' })
  await page.getByRole('button', { name: 'Create the user' }).click()
  await page.getByRole('link', { name: 'Sign in with Example' }).click()
  await page.waitForURL(`${origin}/settings`)
  await page.getByText('What you typed before is here again').waitFor()
  expect(await page.getByLabel('E-mail').inputValue()).toBe('eve@example.com')
  expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe('')
})

it('a form that was kept over a log-in changes what was typed, and nothing that another user changed', async () => {
  const check = (await app.client.post('/checks', { project_id: app.projectId, name: 'Kept', description: 'old' })).body
  await using watched = await signIn(`/checks/${check.id}/edit`)
  const { page, context } = watched
  await page.getByLabel('Name', { exact: true }).fill('Typed')
  await app.client.put(`/checks/${check.id}`, { description: 'new' })
  await context.clearCookies({ name: 'heartbeat_session' })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('link', { name: 'Sign in with Example' }).click()
  await page.getByText('What you typed before is here again').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.waitForURL((url) => url.pathname === `/checks/${check.id}`)
  const { body } = await app.client.get(`/checks/${check.id}`)
  expect(body).toMatchObject({ name: 'Typed', description: 'new' })
})

it('the boxes of a kept form are those of the same channels, although another one was removed', async () => {
  const addChannel = async (name: string) =>
    (await app.client.post('/channels', { kind: 'slack', name, config: { url: 'https://hooks.example.com/x' } })).body
      .id
  const [removed, chosen] = [await addChannel('Removed'), await addChannel('Chosen')]
  const check = (await app.client.post('/checks', { project_id: app.projectId, name: 'Boxes' })).body
  await using watched = await signIn(`/checks/${check.id}/edit`)
  const { page, context } = watched
  await page.getByText('More fields').click()
  await page.getByLabel('All of the project').uncheck()
  await page.getByLabel('Chosen').check()
  await app.client.delete(`/channels/${removed}`)
  await context.clearCookies({ name: 'heartbeat_session' })
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('link', { name: 'Sign in with Example' }).click()
  await page.getByText('What you typed before is here again').waitFor()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.waitForURL((url) => url.pathname === `/checks/${check.id}`)
  expect((await app.client.get(`/checks/${check.id}`)).body.channels).toEqual([chosen])
})

it('a user whom the provider denies is led back to the log-in', async () => {
  provider.account = null
  await using watched = await openPage(browser, origin)
  const { page } = watched
  await page.goto('/login?next=%2Fsettings')
  await page.getByRole('link', { name: 'Sign in with Example' }).click()
  await page.getByText('Example has not signed you in').waitFor()
  provider.account = { sub: 'ann', email: 'ann@example.com', email_verified: true }
  await page.getByRole('link', { name: 'Sign in with Example' }).click()
  await page.waitForURL(`${origin}/settings`)
})

describe.each((['light', 'dark'] as const).flatMap((theme) => [1_280, 320].map((width) => ({ theme, width }))))(
  'in a $theme window of $width pixels',
  (look) => {
    it('the log-in and the settings are without fault', async () => {
      provider.account = { sub: 'ann', email: 'ann@example.com', email_verified: true }
      await using before = await openPage(browser, origin, look)
      await before.page.goto('/login')
      expect([await findOverflow(before.page), await findViolations(before.page), before.faults]).toEqual([[], [], []])
      await using watched = await signIn('/settings', look)
      const { page, faults } = watched
      for (const path of [
        '/settings',
        '/settings/audit',
        '/settings/users',
        '/settings/api-keys',
        '/settings/projects',
      ]) {
        if (path !== '/settings') await page.goto(path)
        for (const summary of await page.locator('main summary').all()) await summary.click()
        expect([path, await findOverflow(page), await findViolations(page)]).toEqual([path, [], []])
      }
      for (const [link, button] of [
        ['Remove admin@example.com', 'Remove'],
        ['Change admin@example.com', 'Save'],
      ] as const) {
        await page.goto('/settings/users')
        await page.getByRole('link', { name: link }).click()
        await page.getByRole('button', { name: button }).waitFor()
        expect([link, await findOverflow(page), await findViolations(page)]).toEqual([link, [], []])
      }
      expect(faults).toEqual([])
    })
  },
)
