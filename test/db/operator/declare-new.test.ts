/** The short way for a new resource: one statement, which does nothing when something is in its way. */

import { describe, expect, test } from 'vitest'
import { type Declaration, declareCheck } from '../../../src/checks/declare/declare-check.ts'
import type { Context } from '../../../src/store/context.ts'
import { removeProject } from '../../../src/tenancy/projects.ts'
import { addCheck, contextWithin, cronSpec, NOW, openTransaction, periodSpec, untilWaiting } from '../checks/fixture.ts'
import { useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()

const declare = (given: Partial<Declaration> = {}) => t.declare({ isNew: true, ...given })

/** Everything that was stored, but what is drawn. */
async function stored() {
  const { rows } = await t.database.query<{ row: object }>(
    `select jsonb_build_object('check', to_jsonb(c) - 'key' - 'id' - 'public_id' - 'project_id', 'state', to_jsonb(s) - 'check_key',
        'flips', (select jsonb_agg(to_jsonb(f) - 'id' - 'check_key') from flips f where f.check_key = c.key)) as row
      from checks c join check_states s on s.check_key = c.key order by c.key`,
  )
  return rows.map(({ row }) => row)
}

describe('a resource that has nothing in its way', () => {
  test.each([
    ['a period', {}],
    [
      'everything else',
      {
        name: 'Nachtsicherung',
        description: 'all of it',
        spec: cronSpec('0 2 * * *', { timeZone: 'Europe/Berlin', maxRuntimeSeconds: 60 }),
        suspend: false,
      },
    ],
  ])('gets what the long way gives it, with %s', async (_, given) => {
    const { check, change } = await declare(given)
    expect(change).toBe('created')
    expect(await t.read()).toEqual(check)
    const short = await stored()
    expect(short).toHaveLength(1)
    await t.reset()
    await t.declare(given)
    expect(short).toEqual(await stored())
  })

  test('needs no transaction', async () => {
    const database = {
      ...t.context.database,
      transaction: () => Promise.reject(new Error('a transaction')),
    }
    const context: Context = { ...t.context, database }
    expect((await declareCheck(context, t.declaration({ isNew: true }))).change).toBe('created')
    await expect(declareCheck(context, t.declaration({ isNew: true }))).rejects.toThrow('a transaction')
  })
})

describe('a resource that has something in its way after all', () => {
  test('keeps the check that it has', async () => {
    const { check } = await t.declare()
    expect(await declare()).toEqual({ check, change: 'unchanged' })
    expect(await declare({ name: 'Renamed' })).toMatchObject({ change: 'updated', check: { id: check.id } })
    expect(await stored()).toHaveLength(1)
  })

  test('gets back what its tombstone kept', async () => {
    const { check } = await t.declare()
    await t.retire()
    expect(await declare()).toMatchObject({ change: 'revived', check: { publicId: check.publicId } })
  })

  test('gets the next number when its slug is taken', async () => {
    await addCheck(t, t.tenant, { name: 'nightly-backup', slug: 'nightly-backup' })
    expect(await declare()).toMatchObject({ change: 'created', check: { slug: 'nightly-backup-2' } })
  })

  test('is rejected for a project that is gone', async () => {
    const projectId = '0190b8a0-0000-7000-8000-000000000000'
    await expect(declare({ projectId })).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
    expect(await stored()).toEqual([])
  })

  test('is paused when it says so', async () => {
    const { check, change } = await declare({ suspend: true })
    expect({ change, status: check.state.status }).toEqual({ change: 'created', status: 'paused' })
    expect(await t.read()).toEqual(check)
  })

  test('adopts the check that it names', async () => {
    const own = await addCheck(t, t.tenant)
    expect(await declare({ adoptId: own.id })).toMatchObject({ change: 'adopted', check: { id: own.id } })
  })
})

describe('a new resource at the same time as others', () => {
  test('waits for another declaration, and finds its check', async () => {
    const first = await openTransaction(t, (tx) => t.declareWithin(tx))
    const second = declare({ name: 'Renamed' })
    await untilWaiting(t, 1)
    await first.commit()
    expect(await second).toMatchObject({ change: 'updated', check: { name: 'Renamed', slug: 'nightly-backup' } })
    expect(await stored()).toHaveLength(1)
  })

  test('creates the check when the other declaration fails', async () => {
    const first = await openTransaction(t, (tx) => t.declareWithin(tx))
    const second = declare()
    await untilWaiting(t, 1)
    await first.rollback()
    expect(await second).toMatchObject({ change: 'created', check: { slug: 'nightly-backup', createdAt: NOW } })
  })

  test('gets one check from twelve declarations of both ways', async () => {
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, i) => t.declare(i % 3 === 0 ? {} : { isNew: true })),
    )
    expect(outcomes.filter(({ change }) => change === 'created')).toHaveLength(1)
    expect(new Set(outcomes.map(({ check }) => check.publicId)).size).toBe(1)
    expect(await stored()).toHaveLength(1)
  })

  test('overtakes a declaration of the long way, which finds its check', async () => {
    const { promise: looked, resolve: hasLooked } = Promise.withResolvers<void>()
    const { promise: gate, resolve: open } = Promise.withResolvers<void>()
    let tries = 0
    const database: Context['database'] = {
      ...t.context.database,
      transaction: (work) =>
        t.context.database.transaction((tx) => {
          tries += 1
          const query: typeof tx.query = async (statement, values) => {
            // What follows the look at the resource's check.
            if (typeof statement === 'object' && statement.name === 'keep_project') {
              hasLooked()
              await gate
            }
            return tx.query(statement, values)
          }
          return work({ ...tx, query })
        }),
    }
    const long = declareCheck({ ...t.context, database }, t.declaration())
    await looked
    const { check, change } = await declare()
    expect(change).toBe('created')
    open()
    expect(await long).toEqual({ check, change: 'unchanged' })
    expect(tries).toBe(2)
    expect(await stored()).toHaveLength(1)
  })

  test('waits for a deletion, and revives the check', async () => {
    const { check } = await t.declare()
    const retiring = await openTransaction(t, (tx) => t.retireWithin(tx))
    const declaring = declare()
    await untilWaiting(t, 1)
    await retiring.commit()
    expect(await declaring).toMatchObject({ change: 'revived', check: { id: check.id } })
  })

  test('waits for an adoption, and finds the adopted check', async () => {
    const own = await addCheck(t, t.tenant, { spec: periodSpec() })
    const adopting = await openTransaction(t, (tx) => t.declareWithin(tx, { adoptId: own.id }))
    const declaring = declare()
    await untilWaiting(t, 1)
    await adopting.commit()
    expect((await declaring).check.id).toBe(own.id)
    expect(await stored()).toHaveLength(1)
  })

  test('waits for the removal of its project, and is rejected once that is gone', async () => {
    const remove = () => openTransaction(t, (tx) => removeProject(contextWithin(t, tx), t.tenant, t.tenant.project))
    const removing = await remove()
    const declaring = declare()
    declaring.catch(() => {})
    await untilWaiting(t, 1)
    await removing.rollback()
    expect((await declaring).change).toBe('created')
    await t.reset()
    const gone = await remove()
    const late = declare()
    late.catch(() => {})
    await untilWaiting(t, 1)
    await gone.commit()
    await expect(late).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
  })
})
