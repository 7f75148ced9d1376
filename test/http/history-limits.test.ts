/** M1: the limits of history, from the variables to the tables. */

import { it } from 'vitest'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { addCheck } from '../support/check.ts'
import { createTestDatabase } from '../support/database.ts'
import { silentLog } from '../support/silent-log.ts'
import { addTenant } from '../support/tenant.ts'
import { eventually } from '../support/until.ts'

it('HISTORY_MAX_FLIPS and HISTORY_MAX_PINGS are kept of each check, and metrics show it', async () => {
  const { url: databaseUrl, database, close } = await createTestDatabase()
  const { key } = await addCheck({ database }, await addTenant({ database }))
  await database.query(
    `with made as (select gen_random_uuid() as id, n from generate_series(1, 12) n),
      flips as (insert into flips (id, check_key, at, detected_at, from_status, to_status, reason) select id, $1, now(), now(), 1, 2, 'failed' from made)
      insert into pings (id, check_key, type, source, created_at) select id, $1, 3, 0, now() + n * interval '1 s' from made`,
    [key],
  )
  const environment = { PING_PORT: '0', API_PORT: '0', OPS_PORT: '0', HISTORY_MAX_FLIPS: '5', HISTORY_MAX_PINGS: '7' }
  const config = readConfig(environment, false)
  const app = createApp({ config, databaseUrl, secretKey: Buffer.alloc(32, 1), log: silentLog })
  const { listening } = await app.start()
  const limited = { flips: 5, pings: 7, events: 0, deliveries: 0 }
  await eventually('the limits are kept', async () => {
    const lines = (await (await fetch(`${listening.ops}/metrics`)).text()).split('\n')
    return Object.entries(limited).every(([kind, rows]) =>
      lines.includes(`heartbeat_history_rows{kind="${kind}"} ${rows}`),
    )
  })
  await app.stop()
  await close()
})
