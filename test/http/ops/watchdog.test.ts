import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { addCheck } from '../../support/check.ts'
import { createTestDatabase } from '../../support/database.ts'
import { silentLog } from '../../support/silent-log.ts'
import { addTenant } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'

/** The first run comes with the start; it shows what the service does every minute. */
async function startWatched(databaseUrl: string) {
  let pings = 0
  const watcher = createServer((_request, response) => {
    pings += 1
    response.end('OK')
  })
  await new Promise<void>((resolve) => watcher.listen(0, '127.0.0.1', resolve))
  const secretKey = Buffer.alloc(32, 7)
  const config = readConfig(
    {
      PING_PORT: '0',
      API_PORT: '0',
      OPS_PORT: '0',
      DATABASE_URL: databaseUrl,
      SECRET_KEY: secretKey.toString('base64'),
      WATCHDOG_URL: `http://127.0.0.1:${(watcher.address() as AddressInfo).port}/ping/secret`,
    },
    false,
  )
  const app = createApp({ config, databaseUrl, secretKey, log: silentLog })
  const { ops } = await app.start()
  return {
    pings: () => pings,
    /** Resolves when the first run has this result. */
    finished: (result: string) =>
      eventually(`a watchdog ping counts as ${result}`, async () =>
        (await (await fetch(`${ops}/metrics`)).text()).includes(
          `heartbeat_watchdog_pings_total{result="${result}"} 1\n`,
        ),
      ),
    async [Symbol.asyncDispose]() {
      await app.stop()
      await new Promise((resolve) => watcher.close(resolve))
    },
  }
}

it('a service that is on time pings the watchdog', async () => {
  const { url, close } = await createTestDatabase()
  {
    await using service = await startWatched(url)
    await service.finished('pinged')
    expect(service.pings()).toBe(1)
  }
  await close()
})

it('a service with an evaluation that is long overdue does not ping the watchdog', async () => {
  const { url, database, close } = await createTestDatabase()
  const check = await addCheck({ database }, await addTenant({ database }))
  await database.query(`update check_states set wake_at = now() - interval '1 minute'`)
  // The row stays locked, so the evaluator skips it.
  await database.transaction(async (tx) => {
    await tx.query('select from check_states where check_key = $1 for update', [check.key])
    await using service = await startWatched(url)
    await service.finished('withheld')
    expect(service.pings()).toBe(0)
  })
  await close()
})
