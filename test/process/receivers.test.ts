/**
 * The program of docs/use/receivers.md that passes webhooks on, between the real service and what stands for the other
 * one.
 */

import { expect, it } from 'vitest'
import { startTestApp } from '../support/app.ts'
import { listBlocksOf } from '../support/documents.ts'
import { findFreePort } from '../support/ports.ts'
import { startReceiver } from '../support/receiver.ts'
import { spawnService } from '../support/service-process.ts'

it('a test and an alarm arrive with a title and a text', async () => {
  const [{ text } = { text: '' }] = listBlocksOf('test/process/receivers.test.ts')
  expect(text).toContain('.listen(9998)')
  const port = await findFreePort()
  const target = await startReceiver()
  await using app = await startTestApp({ environment: { ALLOWED_TARGETS: '127.0.0.0/8' } })
  const program = text.replace('.listen(9998)', `.listen(${port}, '127.0.0.1', () => console.log('listens'))`)
  const args = ['--input-type=module', '--eval', program]
  await using passer = spawnService({ TARGET_URL: `${target.url}/messages` }, { command: process.execPath, args })
  await passer.waitFor(/listens/)

  const config = { url: `http://127.0.0.1:${port}/` }
  const { body: channel } = await app.client.post('/channels', { kind: 'webhook', name: 'Program', config })
  await app.client.post(`/channels/${channel.id}/test`)
  const { publicId } = await app.createCheck()
  await fetch(`${app.pingUrl}/ping/${publicId}/fail`, { method: 'POST', body: 'disk full' })
  const passed = () => target.requests.map(({ path, body }) => ({ path, ...JSON.parse(body) }))
  await expect.poll(passed).toHaveLength(2)
  expect(passed()).toContainEqual({
    path: '/messages',
    title: 'A test: channel.test',
    body: 'It works',
    type: 'info',
  })
  const alarm = { path: '/messages', title: 'Nightly backup: check.down', body: 'disk full', type: 'failure' }
  expect(passed()).toContainEqual(alarm)
  await target.close()
})
