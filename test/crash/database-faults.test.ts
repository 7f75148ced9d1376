import { describe, expect, it } from 'vitest'
import { query } from '../support/embedded.ts'
import { eventually } from '../support/until.ts'
import { connect, liveThroughFaults, OURS } from './life.ts'

/** Everything that can be wrong with the database as a whole, one after the other, in one life of the service. */

const life = liveThroughFaults()

describe('the database', () => {
  it('is killed', () => life.outlive({ begin: () => life.server.kill(), end: () => life.server.start() }))

  it('hangs', () => life.outlive({ begin: () => life.server.pause(), end: () => life.server.resume(), lastsMs: 7_000 }))

  it('hangs for a moment: requests wait, and none fails', async () => {
    await life.assertServing()
    const startedAt = performance.now()
    await life.server.pause()
    await eventually('1.5 s have passed', () => performance.now() - startedAt > 1_500)
    await life.server.resume()
    await life.assertServing()
    await life.trickle.stop()
    expect(life.trickle.outcomes.filter(({ status }) => status === 503)).toEqual([])
  })

  it('is read-only', () =>
    life.outlive({
      begin: () => alterSystem(`alter system set default_transaction_read_only = on`),
      end: () => alterSystem(`alter system reset default_transaction_read_only`),
      isReadable: true,
    }))

  it('lets the user connect no more', () =>
    life.outlive({
      begin: async () => {
        await query(life.server.adminUrl, 'alter role heartbeat connection limit 0')
        await query(life.server.adminUrl, `select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
      },
      end: async () => {
        await query(life.server.adminUrl, 'alter role heartbeat connection limit -1')
        // The log quotes PostgreSQL.
        expect(life.service.stderr).toContain('too many connections for role')
      },
    }))

  it('has all its connections taken by others', async () => {
    const admin = await connect(life.server.adminUrl)
    const hogs = [admin]
    await life.outlive({
      async begin() {
        // Each of the service's that ends leaves a place, a little after it is gone from the view; the service and we race for it.
        let refusals = 0
        await eventually('the server refuses all connections, twenty times in a row', async () => {
          const { rowCount } = await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
          const place = await connect(life.server.url).catch(() => null)
          if (place !== null) hogs.push(place)
          refusals = rowCount === 0 && place === null ? refusals + 1 : 0
          return refusals === 20
        })
      },
      end: () => Promise.all(hogs.map((hog) => hog.end())),
    })
  })

  it('hangs in a statement, which it cancels itself', () =>
    life.outlive({
      begin: () =>
        query(
          life.server.url,
          `create function hang() returns trigger language plpgsql as 'begin perform pg_sleep(60); return new; end';
           create trigger hang before insert on pings for each row execute function hang()`,
        ),
      end: () => query(life.server.url, 'drop function hang cascade'),
      lastsMs: 7_000,
      isReadable: true,
    }))

  async function alterSystem(sql: string) {
    await query(life.server.adminUrl, sql)
    await query(life.server.adminUrl, 'select pg_reload_conf()')
  }
})

describe('after all of that', () => {
  it('nothing that was acknowledged is missing', () => life.assertNothingLost())
})
