import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Declaration, declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import {
  type ChangeHub,
  type ChangeHubOptions,
  createChangeHub,
  type Watcher,
} from '../../../src/checks/watch-changes.ts'
import { SYSTEM } from '../../../src/domain/access.ts'
import { NO_TEXTS } from '../../../src/domain/check.ts'
import type { Clock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/until.ts'
import { addCheck, addTenant, NOW, openTransaction, periodSpec, ping, type TestTenant, useFixture } from './fixture.ts'

/** From the end of a hub's own look to the next one. */
const LOOK_MS = 1_000

const t = useFixture()
let manual: ReturnType<typeof createManualClock>
let problems: unknown[]
let hubs: ChangeHub[]
beforeEach(() => {
  manual = createManualClock(NOW)
  problems = []
  hubs = []
})
afterEach(async () => {
  await Promise.all(hubs.map((hub) => hub.stop()))
})

function startHub(options: Partial<ChangeHubOptions> = {}): ChangeHub {
  const hub = createChangeHub({
    context: t.context,
    databaseUrl: t.url,
    clock: manual,
    onProblem: (error) => problems.push(error),
    ...options,
  })
  hubs.push(hub)
  return hub
}

/** What a watcher was called with, ids in one list. Its first call is the one of the new connection, which is left out. */
async function watch(hub: ChangeHub, given: Partial<Watcher> = {}) {
  const heard: string[] = []
  let nulls = 0
  const watcher: Watcher = {
    organizationId: t.tenant.organizationId,
    checkId: null,
    since: NOW + HOUR,
    onChange(changed) {
      if (changed === null) nulls += 1
      else heard.push(...changed)
    },
    ...given,
  }
  const leave = hub.watch(watcher)
  /** Whatever was committed before this notice was heard when it is. */
  const settle = async () => {
    const last = randomUUID()
    const { checkId, organizationId } = watcher
    if (checkId === null) {
      await notify(organizationId, last)
      await untilAfter(() => heard.includes(last))
      heard.splice(heard.indexOf(last), 1)
    } else {
      const heardBefore = heard.length
      await notify(organizationId, checkId)
      await untilAfter(() => heard.length > heardBefore)
      heard.pop()
    }
  }
  return { heard, nulls: () => nulls, leave, settle }
}

const notify = (...parts: string[]) =>
  t.database.query(`select pg_notify('heartbeat_changes', $1)`, [JSON.stringify(parts)])

/** Lets the time of gathering pass until it is so. */
const untilAfter = (look: () => boolean) =>
  eventually(`after a while, ${look}`, async () => {
    await manual.advance(100)
    return look()
  })

/** By which changes are gathered, but a hub looks only when a test does: its own look could find first what the test is about to look for. */
const withoutLooks = (): Clock => ({
  now: manual.now,
  sleep: (ms, signal) => manual.sleep(ms === LOOK_MS ? Number.POSITIVE_INFINITY : ms, signal),
})

async function startWatching(given: Partial<Watcher> = {}, options: Partial<ChangeHubOptions> = {}) {
  const hub = startHub({ clock: withoutLooks(), ...options })
  const watcher = await watch(hub, given)
  await untilAfter(() => watcher.nulls() === 1)
  await hub.look()
  await watcher.settle()
  return { hub, ...watcher }
}

const pinged = (check: CheckRecord, type: 'success' | 'fail' | 'start', at = t.clock.now()) =>
  t.database.transaction((tx) => ping(tx, check, type, at))

describe('a watcher hears of', () => {
  it('each flip, of any check, when it is committed and not before', async () => {
    const check = await addCheck(t, t.tenant)
    const { heard, settle } = await startWatching()
    await pinged(check, 'success')
    await settle()
    expect(heard).toEqual([check.id])
    const failing = await openTransaction(t, (tx) => ping(tx, check, 'fail', t.clock.now() + 1))
    await settle()
    expect(heard).toEqual([check.id])
    await failing.commit()
    await settle()
    expect(heard).toEqual([check.id, check.id])
  })

  it('pauses, resumptions, new names, removals and new checks', async () => {
    const check = await addCheck(t, t.tenant)
    const { hub, heard, settle } = await startWatching()
    for (const change of [
      () => pauseCheck(t.context, t.tenant, check.id),
      () => resumeCheck(t.context, t.tenant, check.id),
      () => updateCheck(t.context, t.tenant, check.id, { name: 'Another name' }),
      () => removeCheck(t.context, t.tenant, check.id),
    ]) {
      heard.length = 0
      await change()
      await settle()
      expect(heard).toEqual([check.id])
    }
    heard.length = 0
    const { id } = await addCheck(t, t.tenant, { name: 'New' })
    await settle()
    expect(heard).toEqual([id])
    await hub.look()
    await settle()
    expect(heard).toEqual([id])
  })

  it.each([true, false])(
    'a declared check when it is committed, also behind checks that are newer (isNew %s)',
    async (isNew) => {
      const { hub, heard, settle } = await startWatching()
      let id: string | undefined
      const creating = await openTransaction(t, async (tx) => {
        const database = {
          ...t.context.database,
          query: tx.query,
          transaction: (work: (tx: Queryable) => unknown) => work(tx),
        }
        id = (await declareCheck({ ...t.context, database } as typeof t.context, declaration('older', isNew))).check.id
      })
      const newer = (await declareCheck(t.context, declaration('newer', isNew))).check.id
      await hub.look()
      await settle()
      expect(heard).toEqual([newer])
      await creating.commit()
      await settle()
      expect(heard).toEqual([newer, id])
    },
  )

  const declaration = (name: string, isNew: boolean): Declaration => ({
    resource: { cluster: 'default', namespace: 'payments', name },
    projectId: t.tenant.project,
    name,
    ...NO_TEXTS,
    spec: periodSpec(),
    suspend: null,
    adoptId: null,
    isNew,
  })

  it('nothing of a rejected change, of a ping without a flip, and of other organizations', async () => {
    const [check, other] = [await addCheck(t, t.tenant), await addOther()]
    await pinged(check, 'success')
    const { hub, heard, settle } = await startWatching()
    await expect(updateCheck(t.context, t.tenant, check.id, { schedule: 'x' })).rejects.toThrow()
    await pinged(check, 'success', NOW + 1)
    await pinged(other, 'fail')
    await addOther()
    await hub.look()
    await settle()
    expect(heard).toEqual([])
  })

  async function addOther(tenant?: TestTenant): Promise<CheckRecord> {
    return addCheck(t, tenant ?? (await addTenant(t, 'other')), { name: 'Other' })
  }
})

describe('a watcher of one check', () => {
  it('hears of its pings and flips, and of no other check', async () => {
    const [check, other] = [await addCheck(t, t.tenant), await addCheck(t, t.tenant, { name: 'Other' })]
    const { hub, heard, settle } = await startWatching({ checkId: check.id })
    await pinged(other, 'fail')
    await settle()
    await pinged(other, 'success', NOW + 1)
    await hub.look()
    await settle()
    expect(heard).toEqual([])
    await pinged(check, 'start', NOW + 2)
    await hub.look()
    await untilAfter(() => heard.length > 0)
    expect(heard).toEqual([check.id])
    await hub.look()
    await settle()
    expect(heard).toEqual([check.id])
  })

  it('is called within a second after a ping, and no loop looks while no check is watched on its own', async () => {
    const check = await addCheck(t, t.tenant)
    let statements = 0
    const database = { ...t.database }
    database.query = (...given) => {
      statements += 1
      return t.database.query(...(given as Parameters<typeof t.database.query>)) as never
    }
    const hub = startHub({ context: { ...t.context, database } })
    const all = await watch(hub)
    await untilAfter(() => all.nulls() === 1)
    await manual.advance(10_000)
    expect(statements).toBe(0)
    const { heard, leave } = await watch(hub, { checkId: check.id, since: NOW + 2_000 })
    await pinged(check, 'start', NOW + 3_000)
    const movedAt = manual.now()
    await eventually('the notice is heard', async () => {
      await manual.advance(10)
      return heard.length > 0
    })
    expect(heard).toEqual([check.id])
    expect(manual.now() - movedAt).toBeLessThan(1_500)
    leave()
    const before = statements
    await manual.advance(10_000)
    expect(statements).toBe(before)
  })

  it('hears nothing of a check of another organization', async () => {
    const other = await addCheck(t, await addTenant(t, 'other'))
    const hub = startHub()
    const { heard, nulls } = await watch(hub, { checkId: other.id })
    const { nulls: seen, settle } = await watch(hub)
    await untilAfter(() => nulls() === 1 && seen() === 1)
    await hub.look()
    await pinged(other, 'fail', NOW + 1)
    await hub.look()
    await settle()
    expect(heard).toEqual([])
  })
})

describe('the connection', () => {
  it('is one for all watchers, and two processes hear the same', async () => {
    const check = await addCheck(t, t.tenant)
    const first = startHub()
    const watchers = [await watch(first), await watch(first), await watch(first), await watch(startHub())]
    await untilAfter(() => watchers.every(({ nulls }) => nulls() === 1))
    expect(await countConnections()).toBe(2)
    await pinged(check, 'success')
    for (const { heard } of watchers) await untilAfter(() => heard.includes(check.id))
    expect(problems).toEqual([])
  })

  it('is opened again when it breaks, and all read everything again', async () => {
    const check = await addCheck(t, t.tenant)
    const { heard, nulls, settle } = await startWatching()
    await t.database.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'heartbeat-operator changes' and datname = current_database()`,
    )
    await untilAfter(() => nulls() === 2)
    expect(problems).toHaveLength(1)
    await pinged(check, 'success')
    await settle()
    expect(heard).toEqual([check.id])
  })

  it('is not opened without a watcher, and ends with the hub', async () => {
    // PostgreSQL may still end the connections of the tests before.
    await eventually('no connection is left', async () => (await countConnections()) === 0)
    const hub = startHub()
    expect(await countConnections()).toBe(0)
    const { nulls } = await watch(hub)
    await untilAfter(() => nulls() === 1)
    await hub.stop()
    await eventually('no connection is left', async () => (await countConnections()) === 0)
  })

  async function countConnections(): Promise<number> {
    const { rows } = await t.database.query<{ count: number }>(
      `select count(*) as count from pg_stat_activity where application_name = 'heartbeat-operator changes' and datname = current_database()`,
    )
    return rows[0]!.count
  }
})

it('a watcher that comes a moment after a change reads everything again; a later one does not', async () => {
  const check = await addCheck(t, t.tenant)
  const { hub, settle } = await startWatching()
  t.clock.time += MINUTE
  await pinged(check, 'success')
  await settle()
  const early = await watch(hub, { since: NOW + MINUTE })
  expect(early.nulls()).toBe(1)
  const late = await watch(hub, { since: NOW + MINUTE + 2_000 })
  expect(late.nulls()).toBe(0)
})

it('changes of a moment are one call, and many of them are null', async () => {
  const { hub, nulls, settle } = await startWatching()
  const calls: unknown[] = []
  hub.watch({
    ...SYSTEM,
    organizationId: t.tenant.organizationId,
    checkId: null,
    since: NOW + HOUR,
    onChange: (c) => calls.push(c),
  })
  const ids = Array.from({ length: 100 }, () => randomUUID())
  const notifyAll = (given: readonly string[]) =>
    t.database.transaction(async (tx) => {
      for (const id of given)
        await tx.query(`select pg_notify('heartbeat_changes', $1)`, [JSON.stringify([t.tenant.organizationId, id])])
    })
  await notifyAll(ids)
  await untilAfter(() => calls.length > 0)
  expect(calls).toEqual([ids])
  const before = nulls()
  await notifyAll([...ids, randomUUID()])
  await untilAfter(() => calls.length > 1)
  expect(calls.slice(1)).toEqual([null])
  expect(nulls()).toBe(before + 1)
  await settle()
})

it('notices of another form are ignored', async () => {
  const { heard, nulls, settle } = await startWatching()
  for (const payload of ['', 'x', '{}', '[]', `["${t.tenant.organizationId}"]`, '["a","b"]', '[null,null]', '[1,2]'])
    await t.database.query(`select pg_notify('heartbeat_changes', $1)`, [payload])
  await settle()
  expect([heard, nulls(), problems]).toEqual([[], 1, []])
})
