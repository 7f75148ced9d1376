/** From nothing to the first ping: a check by form, its snippet in a terminal, and a page that notices. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStage, type Stage } from './support/stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage({ days: 1 })
}, 120_000)
afterAll(() => stage?.[Symbol.asyncDispose]())

describe.each([true, false])('a check by form, scripts: %s', (script) => {
  it('is created, pinged with its snippet, and shows that the ping has arrived', async () => {
    await using watched = await stage.open('/checks/new', { script, timeZone: 'Asia/Tokyo' })
    const { page, faults } = watched
    expect(await page.getByLabel('Time zone', { exact: true }).inputValue()).toBe(script ? 'Asia/Tokyo' : 'UTC')
    await page.getByLabel('Every', { exact: true }).fill('often')
    await page.getByRole('button', { name: 'Create check' }).click()
    await page.getByText('Name is required.').waitFor()
    expect(await page.getByLabel('Every', { exact: true }).inputValue()).toBe('often')
    await page.getByLabel('Name', { exact: true }).fill('By <form>')
    await page.getByLabel('Every', { exact: true }).fill('15 min')
    await page.getByRole('button', { name: 'Create check' }).click()
    await page.getByText('No ping has arrived yet').waitFor()
    await promisify(execFile)('sh', ['-c', (await page.locator('#snippet-curl').textContent())!])
    if (!script) await page.reload()
    await page.getByText('Pings arrive').waitFor()
    // 422 of the first try is logged by Chromium.
    expect(faults.filter((fault) => !fault.includes('422'))).toEqual([])
  })
})
