/**
 * `ping-server.ts <mode> <database URL>`: the product's ping app on a free port, which it prints, with one of three ways to record a ping.
 * `constant` shows the cost of HTTP alone, `transaction` the simplest way to record. With `knowing` as a third argument, it knows all checks
 * before it listens, as the service does.
 */

import type { RequestListener } from 'node:http'
import { Router } from '@koa/router'
import Koa from 'koa'
import { type Change, decideChanges } from '../../src/checks/change.ts'
import { createKnownChecks } from '../../src/checks/ping/known-checks.ts'
import { createPingRecorder } from '../../src/checks/ping/record.ts'
import { createPingApp, type RecordPing } from '../../src/http/ping/app.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { allocateYoungObjects } from '../../src/runtime/young-objects.ts'
import { saveChanges } from '../../src/store/checks/change-sets.ts'
import { findKeys, lockStates } from '../../src/store/checks/states.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import type { Mode } from './modes.ts'

async function recordInGroups(url: string, isKnowing: boolean): Promise<RecordPing> {
  const database = createDatabase({ url, name: 'bench groups', connections: 4, genericPlans: true, looksUp: true })
  const known = createKnownChecks({ database, clock: systemClock })
  if (isKnowing) await known.refresh()
  const fail = (error: unknown) => process.stderr.write(`${String(error)}\n`)
  return createPingRecorder({
    database,
    known,
    now: systemClock.now,
    onGroup: () => {},
    onError: fail,
  }).record
}

/** The same statements, the same pipelining, ten connections, and a transaction for each ping. */
function recordOneByOne(url: string): RecordPing {
  const database = createDatabase({
    url,
    name: 'bench transaction',
    connections: 10,
    genericPlans: true,
    looksUp: true,
  })
  const known = new Map<string, number>()
  return async (ping) => {
    let key = known.get(ping.publicId)
    if (key === undefined) {
      key = (await findKeys(database, [ping.publicId])).get(ping.publicId)!
      known.set(ping.publicId, key)
    }
    const { type, exitCode, runId, body, at } = ping
    const change: Change = {
      key,
      event: { kind: 'success', runId, durationMs: ping.durationMs },
      at,
      ping: { type, exitCode, runId, body },
    }
    return database.session((session) =>
      session.groupTransaction(
        4_000,
        (tx) => lockStates(tx, [change.key]),
        async (tx, locked) => {
          await saveChanges(tx, decideChanges(locked, [change], 'earlier').changeSet)
          return 'stored' as const
        },
      ),
    )
  }
}

allocateYoungObjects()
const [mode, url, knowing] = process.argv.slice(2) as [Mode, string, string | undefined]
function createProductApp(record: RecordPing): RequestListener {
  return createPingApp({
    record,
    hasCheck: async () => true,
    find: { byName: async () => null, byToken: async () => null },
    now: systemClock.now,
    processNow: systemClock.now,
    onPing: () => {},
    onRequest: () => {},
    onWarning: () => {},
    onError: (error) => process.stderr.write(`${String(error)}\n`),
  })
}

/** Koa and its router as their documentation shows them: the cost of the framework alone. */
function createPlainApp(): RequestListener {
  const router = new Router()
  router.all('/ping/:public_id', (ctx) => {
    ctx.body = 'OK'
  })
  const app = new Koa()
  app.use(router.routes())
  return app.callback()
}

const handler = await {
  groups: async () => createProductApp(await recordInGroups(url, knowing === 'knowing')),
  transaction: async () => createProductApp(recordOneByOne(url)),
  constant: async () => createProductApp(async () => 'stored'),
  plain: async () => createPlainApp(),
}[mode]()
const server = createHttpServer({
  name: 'ping',
  handler,
  bindAddress: '127.0.0.1',
  port: 0,
  errorText: (text) => ({ type: 'text/plain', text }),
})
const { port } = await server.listen()
process.stdout.write(`${port}\n`)
// An orderly end, so that a profile (`node --cpu-prof`) is written.
process.once('SIGTERM', () => process.exit())
