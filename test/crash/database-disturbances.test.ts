import type pg from 'pg'
import { describe, expect, it } from 'vitest'
import { aPing, createAgent, type Outcome, sendPing } from '../support/sent-pings.ts'
import { eventually } from '../support/until.ts'
import { connect, liveThroughFaults, OURS } from './life.ts'

/** What another client does in the database while it serves us: locks, cancelled statements, broken connections. */

const life = liveThroughFaults()

describe('another client', () => {
  it('holds the row of one check: its job gets 503, the others notice nothing', async () => {
    const [held, ...others] = life.checks
    await using stack = new AsyncDisposableStack()
    const holder = await lockRow(stack)
    const startedAt = performance.now()
    await eventually(
      'three pings of the held check have been refused',
      () =>
        life.trickle.since(startedAt).filter(({ ping, status }) => ping.publicId === held!.publicId && status === 503)
          .length >= 3,
    )
    await life.trickle.stop()
    const during = life.trickle.since(startedAt)
    for (const { publicId } of others)
      expect(new Set(during.filter(({ ping }) => ping.publicId === publicId).map(({ status }) => status))).toEqual(
        new Set([200]),
      )
    expect(await life.isReady()).toBe(true)
    expect((await life.client.patch(`/checks/${held!.id}/pause`)).status).toBe(503)
    await holder.query('rollback')
    expect((await sendPing(life.service.ping, aPing(held!.publicId))).status).toBe(200)
  })

  it('holds the table of pings: every job gets 503, and 200 when it is free', async () => {
    await using stack = new AsyncDisposableStack()
    const holder = await connect(life.server.url)
    stack.defer(() => holder.end())
    await holder.query('begin')
    await holder.query('lock table pings in access exclusive mode')
    const startedAt = performance.now()
    await eventually(
      'twenty pings have been refused',
      () => life.trickle.since(startedAt).filter(({ status }) => status === 503).length >= 20,
    )
    await holder.query('rollback')
    await life.assertServing()
  })

  it('cancels a statement of ours', async () => {
    const startedAt = performance.now()
    await holdUp('pg_cancel_backend')
    await eventually('a ping has been refused', () =>
      life.trickle.since(startedAt).some(({ status }) => status === 503),
    )
    await life.assertServing()
  })

  it('terminates a connection of ours in the middle of a group', async () => {
    await holdUp('pg_terminate_backend')
    await life.assertServing()
  })

  it('terminates all our connections again and again', async () => {
    const admin = await connect(life.server.adminUrl)
    // At every moment of a connection's life: while it is opened, idle, in a group, in a call of the management API.
    let isOver = false
    const busy = Array.from({ length: 8 }, async (_, index) => {
      const agent = createAgent()
      const { id, publicId } = life.checks[index % life.checks.length]!
      const outcomes: Outcome[] = []
      while (!isOver) {
        if (index < 2) expect([200, 503]).toContain((await life.client.get(`/checks/${id}`)).status)
        else outcomes.push(await sendPing(life.service.ping, aPing(publicId), agent))
      }
      agent.destroy()
      return outcomes
    })
    for (let round = 0; round < 300; round += 1) {
      await admin.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OURS}`)
    }
    await admin.end()
    isOver = true
    life.keep((await Promise.all(busy)).flat())
    await life.assertServing()
  })

  /** Holds the row of the first check until this function has met a statement of ours that waits for it. */
  async function holdUp(act: 'pg_cancel_backend' | 'pg_terminate_backend') {
    await using stack = new AsyncDisposableStack()
    await lockRow(stack)
    const admin = await connect(life.server.adminUrl)
    stack.defer(() => admin.end())
    const met = `select ${act}(pid) from pg_stat_activity where application_name = 'heartbeat-operator pings' and wait_event_type = 'Lock'`
    await eventually('a statement of ours waits for the row', async () => (await admin.query(met)).rows.length > 0, {
      retryErrors: false,
    })
  }

  /** Locks the row of the first check until its client rolls back. The end of the test ends the client, also after a failure. */
  async function lockRow(stack: AsyncDisposableStack): Promise<pg.Client> {
    const holder = await connect(life.server.url)
    stack.defer(() => holder.end())
    await holder.query('begin')
    await holder.query('select from check_states where check_key = $1 for update', [life.checks[0]!.key])
    return holder
  }
})

describe('after all of that', () => {
  it('nothing that was acknowledged is missing', () => life.assertNothingLost())
})
