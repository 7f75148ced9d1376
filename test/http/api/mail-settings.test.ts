/**
 * The settings of e-mail reach the sender: SMTP_TLS, and the name of the client, which SMTP_NAME and BASE_URL give
 * (test/unit/config/config.test.ts).
 */

import { expect, it } from 'vitest'
import { startTestApp } from '../../support/app.ts'
import { startSmtpReceiver } from '../../support/smtp-receiver.ts'
import { eventually } from '../../support/until.ts'

/** Returns the delivery of a test after its first attempt. */
async function sendTest(port: number, environment: Record<string, string>) {
  await using app = await startTestApp({ environment: { SMTP_URL: `smtp://127.0.0.1:${port}`, ...environment } })
  const channel = { kind: 'email', name: 'Mail', config: { to: ['ops@example.com'] } }
  const { id } = (await app.client.post('/channels', channel)).body
  expect((await app.client.post(`/channels/${id}/test`)).status).toBe(202)
  return await eventually('the test message has its outcome', async () => {
    const { deliveries } = (await app.client.get(`/deliveries?channel_id=${id}`)).body
    return (deliveries[0].status === 'delivered' || deliveries[0].last_error !== null) && deliveries[0]
  })
}

it('SMTP_TLS=required sends nothing to a server without TLS, and the delivery says why', async () => {
  await using receiver = await startSmtpReceiver()
  const delivery = await sendTest(receiver.port, { SMTP_TLS: 'required' })
  expect(delivery.last_error).toContain('does not offer TLS, which SMTP_TLS=required requires')
  expect(receiver.mails).toEqual([])
})

it('the client calls itself by the host of BASE_URL', async () => {
  await using receiver = await startSmtpReceiver()
  const delivery = await sendTest(receiver.port, { BASE_URL: 'https://heartbeat.example.com/api/v1' })
  expect(delivery).toMatchObject({ status: 'delivered' })
  expect(receiver.mails).toMatchObject([{ clientName: 'heartbeat.example.com' }])
})
