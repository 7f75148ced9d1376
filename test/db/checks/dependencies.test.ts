/** `depends_on`: what is stored at the same time, and what a removal leaves of it. */

import { describe, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { updateCheck } from '../../../src/checks/update-check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { findDependents } from '../../../src/store/checks/dependencies.ts'
import { lockStates } from '../../../src/store/checks/states.ts'
import { useEach } from '../../support/use.ts'
import { addCheck, contextWithin, openTransaction, untilWaiting, useFixture } from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture
/** In the order of their keys. */
const checks = useEach(async () => {
  const add = (name: string, dependsOn: string[] = []) => addCheck(fixture, tenant, { name, dependsOn })
  const [a, b, c] = [await add('A'), await add('B'), await add('C')]
  return { a, b, c }
})

const depend = (check: CheckRecord, on: readonly CheckRecord[], context = fixture.context) =>
  updateCheck(context, tenant, check.id, { dependsOn: on.map(({ id }) => id) })
const dependenciesOf = async ({ id }: CheckRecord) => (await getCheck(fixture.context, tenant, id)).dependsOn
const remove = ({ id }: CheckRecord) => removeCheck(fixture.context, tenant, id)

describe('two changes at the same time', () => {
  it('never make a ring together', async () => {
    const { a, b } = checks
    const first = await openTransaction(fixture, (tx) => depend(a, [b], contextWithin(fixture, tx)))
    const second = first.commitBefore(() => depend(b, [a]))
    await expect(second).rejects.toMatchObject({ code: 'invalid_request', field: 'dependsOn' })
    expect(await dependenciesOf(b)).toEqual([])
  })

  it('of another field wait for none', async () => {
    const { a, b, c } = checks
    const first = await openTransaction(fixture, (tx) => depend(a, [b], contextWithin(fixture, tx)))
    await updateCheck(fixture.context, tenant, b.id, { name: 'Other' })
    await depend(c, [])
    await first.commit()
  })

  it('and a removal: the check leaves the list that it joined meanwhile, or is not found', async () => {
    const { a, b, c } = checks
    const choosing = await openTransaction(fixture, (tx) => depend(a, [b, c], contextWithin(fixture, tx)))
    await choosing.commitBefore(() => remove(b))
    expect(await dependenciesOf(a)).toEqual([c.id])
    const removing = await openTransaction(fixture, (tx) => removeCheck(contextWithin(fixture, tx), tenant, c.id))
    await expect(removing.commitBefore(() => depend(a, [c]))).rejects.toMatchObject({ code: 'not_found' })
    expect(await dependenciesOf(a)).toEqual([])
  })
})

describe('a removal', () => {
  it('locks the check and its dependents in the order of their keys, as pings do', async () => {
    const { a, b, c } = checks
    await depend(a, [b])
    await depend(c, [b])
    const pinging = await openTransaction(fixture, (tx) => lockStates(tx, [a.key]))
    const removing = remove(b)
    await untilWaiting(fixture, 1)
    const free = fixture.database.transaction((tx) => lockStates(tx, [b.key, c.key], 'skip locked'))
    expect((await free).map(({ key }) => key)).toEqual([b.key, c.key])
    await pinging.commit()
    await removing
    expect([await dependenciesOf(a), await dependenciesOf(c)]).toEqual([[], []])
  })

  it('takes the check out of any number of lists', async () => {
    const { a, b } = checks
    for (let count = 0; count < 101; count += 1) await addCheck(fixture, tenant, { dependsOn: [b.id, a.id] })
    expect(await findDependents(fixture.database, [a.key, b.key], 200)).toHaveLength(101)
    await remove(b)
    expect(await findDependents(fixture.database, [b.key])).toEqual([])
    expect(await findDependents(fixture.database, [a.key], 200)).toHaveLength(101)
    const { rows } = await fixture.database.query<{ lists: number }>(
      'select count(*) as lists from checks where depends_on @> array[$1::uuid]',
      [b.id],
    )
    expect(rows[0]!.lists).toBe(0)
  })
})

describe('what a check leads to', () => {
  const idOf = (place: number) => `01900000-0000-7000-8000-${String(place).padStart(12, '0')}`

  it('are a thousand checks at most, over others too', async () => {
    const { a, b } = checks
    // Each depends on the one before it.
    await fixture.database.query(
      `insert into checks (id, public_id, project_id, slug, name, tags, labels, managed_by, created_at, updated_at, slug_left_empty, depends_on)
        select i.id::uuid, i.id::uuid, project_id, 'n' || n, name, tags, labels, managed_by, created_at, updated_at, false,
          case when n > 1 then array[i.before::uuid] end
        from checks, generate_series(1, 1001) n,
          lateral (select '01900000-0000-7000-8000-' || lpad(n::text, 12, '0') as id,
            '01900000-0000-7000-8000-' || lpad((n - 1)::text, 12, '0') as before) i
        where checks.id = $1`,
      [b.id],
    )
    const lead = (place: number) => updateCheck(fixture.context, tenant, a.id, { dependsOn: [idOf(place)] })
    expect((await lead(1_000)).dependsOn).toEqual([idOf(1_000)])
    await expect(lead(1_001)).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'must lead to at most 1000 checks, over others too',
    })
  })
})
