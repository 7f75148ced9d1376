import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { updateChannel } from '../../../src/channels/update-channel.ts'
import { claimDeliveries, finishAttempts, listDueChannels, oldestPendingSeconds } from '../../../src/store/deliveries.ts'
import { pruneDeliveries } from '../../../src/store/pruning.ts'
import { createPingRecorder } from '../../../src/checks/record-ping.ts'
import { createDatabase } from '../../../src/store/database.ts'
import { createFixture, type Fixture } from './fixture.ts'
let fixture: Fixture
beforeAll(async () => { fixture = await createFixture() })
afterAll(() => fixture.close())
beforeEach(() => fixture.clear())
const timed = async (name: string, work: () => Promise<any>) => { const s = performance.now(); let r: any; try { r = await work() } catch (e: any) { r = `THREW ${e.code ?? ''} ${e.message} / ${e.cause?.message}` } console.log(name, Math.round(performance.now() - s), 'ms', r) ; return r }

it('B: a group of 500 flips, 100 channels', async () => {
  for (let i = 0; i < 100; i++) await fixture.addChannel()
  const checks = []
  for (let i = 0; i < 500; i++) checks.push(await fixture.addCheck())
  const pings = createDatabase({ url: fixture.url, name: 'pings', connections: 4, genericPlans: true })
  const errors: any[] = []
  const recorder = createPingRecorder({ database: pings, now: () => performance.now(), onGroup: (n, s) => console.log('group', n, s), onError: (e: any, n) => errors.push([n, e.message, e.cause?.message]) })
  const standard = { type: 'fail', exitCode: 3, durationMs: null, runId: null, body: null } as const
  // learn keys, one ping first
  await fixture.clock.advance(60_000)
  await timed('log pings', async () => { const r = await Promise.all(checks.map((c) => recorder.record({ publicId: c.publicId, ...standard, type: 'log', at: fixture.clock.now() } as any))); return r.filter((x) => x !== 'stored').length + ' not stored' })
  for (const type of ['fail', 'success', 'fail'] as const) {
    await fixture.clock.advance(60_000)
    await timed(`flips by ${type}`, async () => {
      const rs = await Promise.all(checks.map((c) => recorder.record({ publicId: c.publicId, ...standard, type, at: fixture.clock.now() } as any)))
      return rs.filter((r) => r !== 'stored').length + ' not stored of ' + rs.length
    })
  }
  console.log(errors.slice(0, 5), errors.length)
  await recorder.stop(); await pings.close()
}, 120_000)
