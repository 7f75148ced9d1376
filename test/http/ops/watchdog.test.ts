import { expect, it } from 'vitest'
import { startTestApp, type TestAppOptions } from '../../support/app.ts'
import { addCheck } from '../../support/check.ts'
import { type Receiver, startReceiver } from '../../support/receiver.ts'
import { addTenant } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'

/** The first run comes with the start; it shows what the service does every minute. */
const startWatched = (watcher: Receiver, options: TestAppOptions = {}) =>
  startTestApp({ environment: { WATCHDOG_URL: `${watcher.url}/ping/secret` }, ...options })

/** Resolves when the first run has this result. */
const finished = (opsUrl: string, result: string) =>
  eventually(`a watchdog ping counts as ${result}`, async () =>
    (await (await fetch(`${opsUrl}/metrics`)).text()).includes(
      `heartbeat_watchdog_pings_total{result="${result}"} 1\n`,
    ),
  )

it('a service that is on time pings the watchdog', async () => {
  await using watcher = await startReceiver()
  await using app = await startWatched(watcher)
  await finished(app.opsUrl, 'pinged')
  expect(watcher.requests).toHaveLength(1)
})

it('a service with an evaluation that is long overdue does not ping the watchdog', async () => {
  await using watcher = await startReceiver()
  const held = Promise.withResolvers<void>()
  await using app = await startWatched(watcher, {
    async prepare(database) {
      const check = await addCheck({ database }, await addTenant({ database }))
      await database.query(`update check_states set wake_at = now() - interval '1 minute'`)
      // The row stays locked, so the evaluator skips it.
      const locked = Promise.withResolvers<void>()
      void database.transaction(async (tx) => {
        await tx.query('select from check_states where check_key = $1 for update', [check.key])
        locked.resolve()
        await held.promise
      })
      await locked.promise
    },
  })
  using _ = { [Symbol.dispose]: held.resolve }
  await finished(app.opsUrl, 'withheld')
  expect(watcher.requests).toEqual([])
})
