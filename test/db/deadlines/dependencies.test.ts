/** A check that is down with all that depend on it, in the database: one message. */

import { describe, expect, it } from 'vitest'
import { expireOverdue } from '../../../src/checks/deadlines/expire-overdue.ts'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { MINUTE, SECOND } from '../../support/builders.ts'
import { useEach } from '../../support/use.ts'
import { pingOf, type Replica, usePings } from '../pings/fixture.ts'

const t = usePings()
const one = useEach(() => t.addReplica('one'))
const two = useEach(() => t.addReplica('two'))

/** With a grace time of a minute. */
const WEEK = { spec: { periodSeconds: 604_800, graceSeconds: 60 } }

const channel = useEach(async () => {
  const { rows } = await t.database.query<{ id: string }>(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
      values (gen_random_uuid(), $1, 'webhook', 'Team', '\\x00', '\\x00', '{check.down,check.up,check.paused}', now())
      returning id`,
    [t.tenant().organizationId],
  )
  return { id: rows[0]!.id }
})

/** A check, and `count` that depend on it. */
async function addFamily(count: number, when = WEEK): Promise<{ parent: CheckRecord; children: CheckRecord[] }> {
  const parent = await t.addCheck(when, systemClock.now() - 10 * MINUTE)
  const children: CheckRecord[] = []
  for (let child = 0; child < count; child += 1) {
    const check = await t.addCheck(when, systemClock.now() - 10 * MINUTE)
    await t.database.query('update checks set depends_on = array[$2::uuid] where key = $1', [check.key, parent.id])
    children.push(check)
  }
  return { parent, children }
}

const send = async (type: 'success' | 'fail', checks: readonly CheckRecord[], by: Replica = one) => {
  const at = Math.floor(systemClock.now())
  const { outcomes } = await by.commit(checks.map((check) => pingOf(check, { type, at })))
  expect(new Set(outcomes)).toEqual(new Set(['stored']))
}

/** What was sent, and what was not with its reason, of each check: `down`, `(down: dependency)`. */
async function messages(check: CheckRecord): Promise<string[]> {
  const { rows } = await t.database.query<{ type: string; reason: string | null; cause: unknown }>(
    'select type, reason, cause from deliveries where check_id = $1 and channel_id = $2 order by event_id',
    [check.id, channel.id],
  )
  return rows.map(({ type, reason }) => (reason === null ? type.slice(6) : `(${type.slice(6)}: ${reason})`))
}

async function expire(by: Replica = one) {
  await t.stayUp()
  return expireOverdue({ database: by.database, now: () => 0 }, 100)
}

const due = async (check: CheckRecord) => {
  const { rows } = await t.database.query<{ due: boolean }>(
    'select wake_at <= now() as due from check_states where check_key = $1',
    [check.key],
  )
  return rows[0]!.due
}

/** As if it had happened earlier. */
const age = (check: CheckRecord, seconds: number) =>
  t.database.query(
    `update check_states set since = since - make_interval(secs => $2), wake_at = now(),
        hold = hold || jsonb_build_object('from', (hold -> 'from')::float8 - $2 * 1000) where check_key = $1`,
    [check.key, seconds],
  )

describe('a check that goes down with ten that depend on it', () => {
  it('is one message; what is not sent names the check', async () => {
    const { parent, children } = await addFamily(10)
    await send('fail', [parent])
    await send('fail', children)
    expect(await messages(parent)).toEqual(['down'])
    for (const child of children) {
      expect(await messages(child)).toEqual(['(down: dependency)'])
      expect(await t.stateOf(child)).toMatchObject({ status: 'down', incidentSince: null, notified: 'new' })
    }
    const { rows } = await t.database.query<{ cause: unknown }>(
      'select distinct cause from deliveries where status = 3',
    )
    expect(rows).toEqual([{ cause: { kind: 'check', id: parent.id } }])
    await send('success', [parent, ...children])
    expect(await messages(parent)).toEqual(['down', 'up'])
    for (const child of children) expect(await messages(child)).toEqual(['(down: dependency)', '(up: dependency)'])
  })

  it('in one group of pings, whatever their order', async () => {
    const { parent, children } = await addFamily(3)
    await send('fail', [...children, parent])
    expect(await messages(parent)).toEqual(['down'])
    for (const child of children) expect(await messages(child)).toEqual(['(down: dependency)'])
  })

  it('at one deadline, found by two replicas at once', async () => {
    const { parent, children } = await addFamily(10)
    await send('success', [parent, ...children])
    const passed = `due_at = now() - interval '1 second', expected_at = now() - interval '2 minutes', wake_at = now() - interval '1 second'`
    await t.database.query(`update check_states set ${passed}`)
    // The others are found first.
    await t.database.query(`update check_states set wake_at = wake_at - interval '1 second' where check_key <> $1`, [
      parent.key,
    ])
    await t.stayUp()
    await Promise.all([one, two].map((by) => expireOverdue({ database: by.database, now: () => 0 }, 3)))
    for (let turn = 0; turn < 4; turn += 1) await expire(turn % 2 === 0 ? one : two)
    expect(await messages(parent)).toEqual(['down'])
    for (const child of children) expect(await messages(child)).toEqual(['(down: dependency)'])
  })
})

describe('the other check is up again', () => {
  it('this one is evaluated at once, and notified when it is still down after its own grace time', async () => {
    const { parent, children } = await addFamily(1)
    const child = children[0]!
    await send('fail', [parent])
    await send('fail', [child])
    await age(child, 300)
    await expire()
    expect(await due(child)).toBe(false)
    await send('success', [parent])
    expect(await due(child)).toBe(true)
    await expire()
    expect(await messages(child)).toEqual(['(down: dependency)'])
    expect(await due(child)).toBe(false)
    await age(parent, 61)
    await t.database.query('update check_states set wake_at = now() where check_key = $1', [child.key])
    await expire()
    expect(await messages(child)).toEqual(['(down: dependency)', 'down'])
    await send('success', [child])
    expect(await messages(child)).toEqual(['(down: dependency)', 'down', 'up'])
  })

  it('paused: this one is notified at once', async () => {
    const { parent, children } = await addFamily(1)
    await send('fail', [parent])
    await send('fail', children)
    await pauseCheck(t.context, t.tenant(), parent.id)
    await expire()
    expect(await messages(children[0]!)).toEqual(['(down: dependency)', 'down'])
  })

  it.each([
    ['is removed', (_: CheckRecord, parent: CheckRecord) => removeCheck(t.context, t.tenant(), parent.id)],
    ['is taken away', (child: CheckRecord) => updateCheck(t.context, t.tenant(), child.id, { dependsOn: [] })],
  ])('when it %s: this one is notified at once', async (_, act) => {
    const { parent, children } = await addFamily(1)
    const child = children[0]!
    await send('fail', [parent])
    await send('fail', [child])
    await act(child, parent)
    expect(await due(child)).toBe(true)
    await expire()
    expect(await messages(child)).toEqual(['(down: dependency)', 'down'])
  })

  it('while this one is locked: it is looked at within a minute', async () => {
    const { parent, children } = await addFamily(1)
    const child = children[0]!
    await send('fail', [parent])
    await send('fail', [child])
    const before = systemClock.now()
    await t.database.transaction(async (tx) => {
      await tx.query('select from check_states where check_key = $1 for no key update', [child.key])
      await send('success', [parent], two)
    })
    const { hold } = await t.stateOf(child)
    expect(hold!.lookAt).toBeLessThanOrEqual(before + MINUTE + SECOND)
    expect(await messages(parent)).toEqual(['down', 'up'])
  })
})
