/** Pictures of pages for the documents, of a service with the data of the demo: `npm run pictures`. */

import { it } from 'vitest'
import type { Look } from './support/browser.ts'
import { takePicture } from './support/pictures.ts'
import { openStage } from './support/stage.ts'

it('takes a picture of each page', { timeout: 300_000 }, async () => {
  await using stage = await openStage()
  const id = (name: string) => stage.demo.checks.get(name)!.id
  const backup = `/checks/${id('Nightly database backup')}`
  const pictures: [name: string, path: string, look: Look, height: number, from?: string][] = [
    ['checks', '/checks', { width: 1_280 }, 800],
    ['checks-dark', '/checks', { width: 1_280, theme: 'dark' }, 800],
    ['checks-phone', '/checks', { width: 390, height: 844 }, 844],
    ['check', `/checks/${id('Invoice export')}`, { width: 1_280 }, 1_000],
    ['check-phone', `/checks/${id('Invoice export')}`, { width: 390, height: 844, theme: 'dark' }, 844],
    ['check-runs', backup, { width: 1_280 }, 640, '#uptime-title'],
    ['how', `${backup}/how`, { width: 1_280 }, 800],
    ['edit', `/checks/${id('Data warehouse sync')}/edit`, { width: 1_280 }, 900],
    ['channel', '/channels', { width: 1_280 }, 700],
    ['deliveries', '/deliveries', { width: 1_280 }, 800],
    ['settings', '/settings', { width: 1_280 }, 900],
    ['service', '/service', { width: 1_280 }, 620],
  ]
  for (const [name, path, look, height, from] of pictures) {
    await using watched = await stage.open(path, look)
    if (name === 'channel') await watched.page.getByRole('link', { name: 'Ticket system' }).click()
    await takePicture(watched.page, name, height, from)
  }
})
