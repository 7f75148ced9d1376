/** From the message to the acknowledgement, on a phone that is not logged in. */

import { afterAll, beforeAll, expect, it } from 'vitest'
import { findViolations } from './support/axe.ts'
import { findOverflow } from './support/browser.ts'
import { openStage, type Stage } from './support/stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage(null)
  const config = { url: `${stage.receiver.url}/hook` }
  const channel = { kind: 'webhook', name: 'Pager', events: ['check.down'], config }
  expect((await stage.app.client.post('/channels', channel)).status).toBe(201)
}, 120_000)
afterAll(() => stage?.[Symbol.asyncDispose]())

/** A check that is down, and the link in its message. */
async function takeDown(name: string) {
  const { id, publicId } = await stage.app.createCheck({ name })
  const before = stage.receiver.requests.length
  await fetch(`${stage.app.pingUrl}/ping/${publicId}/fail`, { method: 'POST' })
  await expect.poll(() => stage.receiver.requests.length).toBe(before + 1)
  const { data } = JSON.parse(String(stage.receiver.requests.at(-1)!.body))
  expect(data.links.acknowledge).toMatch(new RegExp(`^${stage.origin}/ack/[\\w-]+$`))
  return { id, link: data.links.acknowledge as string }
}

it.each([
  { theme: 'light', script: true },
  { theme: 'dark', script: true },
  { theme: 'light', script: false },
] as const)('a person sees what is down, presses a button, and sees that it is done: %j', async (look) => {
  const name = `${'W'.repeat(60)}<b>backup`
  const { id, link } = await takeDown(name)
  await using watched = await stage.open('about:blank', { ...look, width: 360, height: 740 }, null)
  const { page, faults } = watched
  expect((await page.goto(link))!.status()).toBe(200)
  await page.getByRole('heading', { name: `${name} is down` }).waitFor()
  expect(await findOverflow(page)).toEqual([])
  if (look.script) expect(await findViolations(page)).toEqual([])
  for (const button of await page.getByRole('button').all()) {
    const { width, height } = (await button.boundingBox())!
    expect(Math.min(width / 6, height)).toBeGreaterThanOrEqual(48)
  }
  await page.getByLabel('Your name').fill('Ada')
  await page.getByRole('button', { name: 'Quiet for 2 hours' }).click()
  await page.getByText('Thank you.').waitFor()
  expect(await page.locator('main').textContent()).toMatch(
    /Acknowledged by Ada \(by the link of a message\) since .*, until/,
  )
  expect(await page.getByRole('button').count()).toBe(0)
  expect(await findOverflow(page)).toEqual([])
  await page.reload()
  await page.getByText('Nothing has changed: it was acknowledged before.').waitFor()
  expect((await stage.app.client.get(`/checks/${id}`)).body.acknowledged.by.name).toBe('Ada')
  expect(faults).toEqual([])
})

it('a colleague sees on the dashboard at once who has it', async () => {
  const { id, link } = await takeDown('Watched by two')
  await using colleague = await stage.open(`/checks/${id}`)
  await colleague.page.getByRole('button', { name: 'Acknowledge' }).waitFor()
  await colleague.page.waitForTimeout(1_200)
  expect((await fetch(link, { method: 'POST' })).status).toBe(200)
  await colleague.page.getByText('Acknowledged by the link of a message').waitFor()
  await colleague.page.getByRole('button', { name: 'End the acknowledgement' }).click()
  await colleague.page.getByText('reminders are sent again').waitFor()
  expect(colleague.faults).toEqual([])
})
