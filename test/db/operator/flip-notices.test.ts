import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { listenForNotices, type NoticeListenerOptions } from '../../../src/store/checks/change-notices.ts'
import { createDatabase } from '../../../src/store/postgres/database.ts'
import type { Listener } from '../../../src/store/postgres/listener.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, contextWithin, NOW, openTransaction, ping } from '../checks/fixture.ts'
import { createRecorder, RESOURCE, useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
let heard: unknown[]
let connections: number
let problems: unknown[]
let listener: Listener | undefined
beforeEach(async () => {
  heard = []
  problems = []
  connections = 0
})
afterEach(async () => {
  await listener?.stop()
  listener = undefined
})

function listen(options: Partial<NoticeListenerOptions> = {}): void {
  listener = listenForNotices({
    url: t.url,
    name: 'flips',
    clock: systemClock,
    onNotice({ resource }) {
      if (resource !== null) heard.push(resource)
    },
    onConnected: () => {
      connections += 1
    },
    onProblem: (error) => problems.push(error),
    ...options,
  })
  listener.start()
}

async function listening(options?: Partial<NoticeListenerOptions>): Promise<void> {
  listen(options)
  await eventually('it listens', () => connections === 1)
}

/** Of an organization and a check. */
const IDS = [randomUUID(), randomUUID()]

/** Whatever was committed before this notice has been heard when it has. */
async function settle(): Promise<void> {
  const last = { ...RESOURCE, name: `last-${heard.length}` }
  await t.database.query(`select pg_notify('heartbeat_changes', $1)`, [
    JSON.stringify([...IDS, ...Object.values(last)]),
  ])
  await eventually('the last notice is heard', () =>
    heard.some((resource) => (resource as typeof last).name === last.name),
  )
  heard = heard.filter((resource) => (resource as typeof last).name !== last.name)
}

describe('a flip of a declared check', () => {
  const check = useEach(async () => (await t.declare()).check)

  it('is heard when it is committed, and not before', async () => {
    await listening()
    const pausing = await openTransaction(t, (tx) => pauseCheck(contextWithin(t, tx), t.tenant, check.id))
    await settle()
    expect(heard).toEqual([])
    await pausing.commit()
    await settle()
    expect(heard).toEqual([RESOURCE])
  })

  it('is notified for pings in a group, pauses and declarations', async () => {
    await listening()
    await t.pinged(check, 'success', NOW)
    await t.pinged(check, 'fail', NOW + 1)
    await t.declare({ suspend: true })
    await settle()
    expect(heard).toEqual([RESOURCE, RESOURCE, RESOURCE])
  })

  it('is not heard without a flip, nor when the check is made, nor of the API; the notice names the cluster', async () => {
    const { check: other } = await t.declare({ resource: { ...RESOURCE, cluster: 'other' } })
    const own = await addCheck(t, t.tenant)
    await listening()
    await t.declare({ resource: { ...RESOURCE, name: 'new' } })
    await t.pinged(check, 'start', NOW)
    await t.pinged(check, 'log', NOW)
    await t.pinged(other, 'fail', NOW)
    await t.pinged(own, 'fail', NOW)
    await settle()
    expect(heard).toEqual([{ ...RESOURCE, cluster: 'other' }])
    expect(await t.flipsOf(other.key)).toHaveLength(2)
  })

  it('is notified for each of many at once', async () => {
    const checks = []
    for (let i = 0; i < 100; i += 1) {
      const name = `${'n'.repeat(200)}-${i}`
      checks.push((await t.declare({ resource: { ...RESOURCE, name } })).check)
    }
    await listening()
    const recorder = createRecorder(t)
    const results = await Promise.all(checks.map((each) => recorder.record(each, 'fail')))
    await recorder.stop()
    expect(new Set(results)).toEqual(new Set(['stored']))
    await eventually('each of a hundred is heard', () => heard.length === 100)
    expect(new Set(heard.map((resource) => (resource as typeof RESOURCE).name)).size).toBe(100)
    expect(problems).toEqual([])
  })

  it('looks its one check up, however few there are: no scan', async () => {
    await t.database.query(
      `insert into checks (id, public_id, project_id, name, slug, created_at)
         select gen_random_uuid(), gen_random_uuid(), $1, 'x', 's' || n, now() from generate_series(1, 2000) n`,
      [t.tenant.project],
    )
    await t.database.transaction(async (tx) => {
      const scans = async () =>
        (await tx.query(`select seq_scan from pg_stat_xact_user_tables where relname = 'checks'`)).rows
      // What this connection did before may be counted too.
      const before = await scans()
      await ping(tx, check, 'fail', NOW)
      expect(await scans()).toEqual(before)
    })
  })

  it('is written although the name of its resource is too long for a notice', async () => {
    await t.database.query('update checks set kubernetes_name = $1', ['x'.repeat(9_000)])
    expect(await t.pinged(check, 'fail', NOW)).toBe('applied')
    expect(await t.flipsOf(check.key)).toHaveLength(2)
  })
})

describe('the statements of a ping', () => {
  /** What a group of one ping runs, by its statements' names. */
  async function statementsOf(publicId: string, type: 'success' | 'fail'): Promise<unknown[]> {
    const names: unknown[] = []
    const database = createDatabase({ url: t.url, name: 'counted', connections: 1, genericPlans: true })
    const original = pg.Client.prototype.query
    try {
      pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
        const [statement] = given
        const { name, text } = statement as { name?: string; text: string }
        names.push(name ?? text)
        return (original as (...given: unknown[]) => unknown).apply(this, given)
      } as never
      const recorder = createRecorder({ database, clock: t.clock })
      expect(await recorder.record({ publicId }, type)).toBe('stored')
      await recorder.stop()
    } finally {
      pg.Client.prototype.query = original
      await database.close()
    }
    return names
  }

  it('are not more for the notices; without a flip none sends any', async () => {
    const { check } = await t.declare()
    const begin = ['find_keys', 'begin', 'lock_states wait', 'save_states', 'insert_pings']
    expect(await statementsOf(check.publicId, 'success')).toEqual([...begin, 'insert_flips', 'commit'])
    const failed = begin.toSpliced(3, 0, 'find_covering', 'find_dependencies', 'find_escalations')
    expect(await statementsOf(check.publicId, 'fail')).toEqual([...failed, 'insert_flips', 'insert_events', 'commit'])
    // An open incident may have to be escalated.
    expect(await statementsOf(check.publicId, 'fail')).toEqual([...failed, 'commit'])
    expect(problems).toEqual([])
  })
})

describe('the listener', () => {
  const check = useEach(async () => (await t.declare()).check)

  it('connects again when the server ends its connection, and says so each time', async () => {
    await listening({ checkEveryMs: 60_000 })
    await t.database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'heartbeat-operator flips' and datname = current_database()`,
    )
    await eventually('it listens again', () => connections === 2)
    expect(problems).toHaveLength(1)
    await t.pinged(check, 'fail', NOW)
    await eventually('the resource is heard', () => heard.length === 1)
    expect(heard).toEqual([RESOURCE])
  })

  it('notices a connection that says nothing any more, within seconds', async () => {
    await using proxy = await startProxy(t.url)
    await listening({ url: proxy.url, checkEveryMs: 100 })
    proxy.freeze()
    const frozenAt = performance.now()
    await eventually('the failure is reported', () => problems.length > 0)
    expect(performance.now() - frozenAt).toBeLessThan(10_000)
    proxy.thaw()
    await eventually('it listens again', () => connections === 2)
    await t.pinged(check, 'fail', NOW)
    await eventually('the resource is heard', () => heard.length === 1)
  })

  it('retries with back-off while the database does not respond', async () => {
    const waits: number[] = []
    const { promise: enough, resolve } = Promise.withResolvers<void>()
    const stopped = new AbortController()
    const clock = {
      now: () => NOW,
      async sleep(ms: number, signal?: AbortSignal) {
        waits.push(ms)
        if (waits.length < 9) return
        resolve()
        if (signal !== undefined && !signal.aborted) await once(signal, 'abort')
        stopped.abort()
      },
    }
    listen({ url: 'postgres://nobody@127.0.0.1:1/none', clock })
    await enough
    await listener!.stop()
    expect(waits).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000, 5_000])
    expect(problems).toHaveLength(9)
    expect(connections).toBe(0)
    expect(stopped.signal.aborted).toBe(true)
  })

  it('stops at once, and is not heard of again', async () => {
    await listening({ checkEveryMs: 60_000 })
    await listener!.stop()
    await t.pinged(check, 'fail', NOW)
    for (let isOpen = true; isOpen; ) {
      const { rowCount } = await t.database.query(
        `select from pg_stat_activity where application_name = 'heartbeat-operator flips' and datname = current_database()`,
      )
      isOpen = rowCount > 0
    }
    expect([heard, problems]).toEqual([[], []])
  })

  it('stops while it connects to a server that never responds', async () => {
    await using proxy = await startProxy(t.url)
    proxy.freeze()
    listen({ url: proxy.url })
    await proxy.accepted()
    const stoppedAt = performance.now()
    await listener!.stop()
    // A connection attempt alone would take three seconds.
    expect(performance.now() - stoppedAt).toBeLessThan(2_500)
    expect(problems).toEqual([])
  })

  it('ignores notices of another form', async () => {
    await listening()
    const [organization, check] = IDS
    for (const parts of [
      {},
      [],
      [...IDS],
      [...IDS, 'default', 'a'],
      [...IDS, 'default', 'a', 1],
      ['a', check, 'default', 'a', 'b'],
    ])
      await t.database.query(`select pg_notify('heartbeat_changes', $1)`, [JSON.stringify(parts)])
    for (const payload of ['', 'x', `["${organization}",null,null,null,null]`])
      await t.database.query(`select pg_notify('heartbeat_changes', $1)`, [payload])
    await settle()
    expect([heard, problems]).toEqual([[], []])
  })
})

/** Stands between the listener and PostgreSQL; frozen, it accepts everything and passes nothing on. */
async function startProxy(url: string) {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  let isFrozen = false
  const server = createServer((near) => {
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => isFrozen || to.write(bytes))
      from.on('error', () => {})
      from.on('close', () => isFrozen || to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const address = new URL(url)
  address.hostname = '127.0.0.1'
  address.port = String((server.address() as { port: number }).port)
  return {
    url: address.href,
    freeze: () => {
      isFrozen = true
    },
    thaw: () => {
      isFrozen = false
    },
    accepted: () => accepted,
    async [Symbol.asyncDispose]() {
      await listener?.stop()
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
