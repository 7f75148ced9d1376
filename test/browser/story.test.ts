/** What the README promises a new user, in its order, from the log-in to a colleague who may look. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { takePicture } from './support/pictures.ts'
import { openStage, type Stage } from './support/stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage(null)
}, 120_000)
afterAll(() => stage?.[Symbol.asyncDispose]())

it('a new user comes from an empty list to a notification and a colleague', { timeout: 120_000 }, async () => {
  const { app, receiver } = stage
  await using watched = await stage.open('/', { height: 760 }, null)
  const { page, faults } = watched

  await page.waitForURL('**/login?next=*')
  await takePicture(page, 'story-1-log-in')
  await page.getByLabel('E-mail').fill(app.logIn.email)
  await page.getByLabel('Password').fill(app.logIn.password)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByRole('heading', { name: 'No checks yet' }).waitFor()
  await takePicture(page, 'story-2-no-checks')

  await page.getByRole('link', { name: 'New check' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Nightly backup')
  await page.getByLabel('Every', { exact: true }).fill('10 s')
  await page.getByLabel('Grace', { exact: true }).fill('5 s')
  await page.locator('#preview').getByText('15 seconds').waitFor()
  await takePicture(page, 'story-3-new-check')
  await page.getByRole('button', { name: 'Create check' }).click()

  await page.getByText('No ping has arrived yet').waitFor()
  await takePicture(page, 'story-4-how-to-ping')
  await promisify(execFile)('sh', ['-c', (await page.locator('#snippet-curl').textContent())!])
  await page.getByText('Pings arrive').waitFor()

  await page.getByRole('link', { name: 'Checks', exact: true }).click()
  const badge = page.locator('.checks .status')
  await badge.getByText('Up').waitFor()
  // It is late for five seconds only. While its row is locked it does not go down: a busy machine may take longer to show the one.
  await app.database.transaction(async (tx) => {
    await tx.query('set local idle_in_transaction_session_timeout = 0')
    await tx.query('select from check_states for update')
    await badge.getByText('Late').waitFor()
    await takePicture(page, 'story-5-late', 420)
  })
  await badge.getByText('Down').waitFor()
  await takePicture(page, 'story-6-down', 420)

  await page.getByRole('link', { name: 'Nightly backup' }).click()
  await page.getByText(/^Down since .*: no ping came in time/).waitFor()
  await takePicture(page, 'story-7-reason')

  await page.getByRole('link', { name: 'Channels', exact: true }).first().click()
  await page.getByText('Add a channel').first().click()
  await page.getByRole('link', { name: 'Webhook' }).click()
  await page.getByLabel('Name', { exact: true }).fill('My receiver')
  await page.getByLabel('URL').fill(`${receiver.url}/mine`)
  await takePicture(page, 'story-8-channel')
  await page.getByRole('button', { name: 'Add the channel' }).click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await page.getByText('Last test').waitFor()
  await page.getByText('Delivered').first().waitFor()
  await takePicture(page, 'story-9-test')
  expect(receiver.requests.some(({ path, body }) => path === '/mine' && body.includes('channel.test'))).toBe(true)

  await page.getByRole('link', { name: 'Settings', exact: true }).first().click()
  const users = page.getByRole('region', { name: 'Users' })
  await users.getByText('Create a user').click()
  await users.getByLabel('E-mail').fill('colleague@example.com')
  await users.getByLabel('Password').fill('a password to look around')
  await users.getByLabel('Scope').selectOption('read')
  await users.scrollIntoViewIfNeeded()
  await users.getByRole('button', { name: 'Create the user' }).click()
  await page.getByText('The user is created.').waitFor()
  await takePicture(page, 'story-10-user', 700, '#users')
  expect(faults).toEqual([])
})
