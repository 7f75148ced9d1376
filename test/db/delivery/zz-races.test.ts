import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { setInstallationChannel } from '../../../src/channels/installation-channel.ts'
import { retryDelivery } from '../../../src/channels/retry-delivery.ts'
import { claimDeliveries } from '../../../src/store/deliveries.ts'
import { CLAIM_MS } from '../../../src/domain/retry.ts'
import { createFixture, createReceiver, DELIVERED, AWAY, type Fixture } from './fixture.ts'
let fixture: Fixture
beforeAll(async () => { fixture = await createFixture() })
afterAll(() => fixture.close())
beforeEach(() => fixture.clear())

it('A: retry of an older one makes a younger one that is on its way go out twice at once', async () => {
  await fixture.addChannel()
  const check = await fixture.addCheck()
  await fixture.ping(check, { type: 'fail', exitCode: 3 })
  const first = fixture.createOutbox(async () => ({ kind: 'refused', status: 410, error: 'gone' }))
  await first.drain()
  await fixture.ping(check)   // up
  let atOnce = 0, most = 0
  const log: string[] = []
  const gate = Promise.withResolvers<void>()
  const send = async ({ event }: any) => {
    log.push(event.type)
    if (event.type === 'check.up') { atOnce += 1; most = Math.max(most, atOnce); await gate.promise; atOnce -= 1 }
    return DELIVERED
  }
  const one = fixture.createOutbox(send as any)
  const two = fixture.createOutbox(send as any)
  const running = one.drain()
  for (let i = 0; i < 100 && log.length === 0; i++) await new Promise((r) => setTimeout(r, 10))
  const { rows } = await fixture.database.query<any>("select id from deliveries where status = 2")
  await retryDelivery({ database: fixture.database, clock: fixture.clock } as any, { organizationId: fixture.tenant().organizationId, projectId: null } as any, rows[0].id)
  const other = two.drain()
  for (let i = 0; i < 50 && log.length < 3; i++) await new Promise((r) => setTimeout(r, 20))
  console.log('A', log, 'at once:', most)
  gate.resolve()
  await Promise.all([running, other])
  console.log('A', await fixture.deliveries())
})
