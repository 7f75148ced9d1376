import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Requirement } from '../../../src/domain/label-selector.ts'
import { MAX_SILENCES } from '../../../src/silences/create-silence.ts'
import { declareSilence, retireSilence, type SilenceDeclaration } from '../../../src/silences/declare-silence.ts'
import { findSilenceOf } from '../../../src/silences/find-silences.ts'
import { COVERS, findCovering } from '../../../src/store/silences/silences.ts'
import { lockOrganization } from '../../../src/store/tenancy/organizations.ts'
import { HOUR } from '../../support/builders.ts'
import { untilWaiting } from '../../support/database.ts'
import { useEach } from '../../support/use.ts'
import { manualClock, useOrganization } from '../auth/fixtures.ts'
import { contextOf } from '../channels/fixture.ts'

const { test, organization: acme } = useOrganization()
let clock = manualClock()
const context = useEach(() => {
  clock = manualClock()
  return contextOf(test.database, { clock })
})
const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'sundays' }
let projectId: string
beforeEach(async () => {
  projectId = await acme.addProject('payments')
})

const now = () => context.clock.now()
const declare = (given: Partial<SilenceDeclaration> = {}) =>
  declareSilence(context, {
    ...{ resource: RESOURCE, projectId, selector: [], comment: 'Sundays' },
    times: { endsAt: now() + HOUR },
    ...given,
  })
// biome-ignore lint/suspicious/noExplicitAny: a test asserts the shape by reading it
const read = async (text: string): Promise<any[]> => (await test.database.query(text)).rows
const silences = () => read('select id, comment from silences')
const acts = async () => (await read('select action from audit_log')).map(({ action }) => action).sort()

describe('declaring a silence', () => {
  it('is written once, and again when something has changed', async () => {
    const { silence, change } = await declare()
    expect([silence.activeUntil, change]).toEqual([now() + HOUR, 'created'])
    expect((await declare()).change).toBe('unchanged')
    for (const given of [{ comment: 'Other' }, { times: { endsAt: now() + 2 * HOUR }, comment: 'Other' }])
      expect(await declare(given)).toMatchObject({ change: 'updated', silence: { id: silence.id } })
    expect(await silences()).toEqual([{ id: silence.id, comment: 'Other' }])
    await retireSilence(context, RESOURCE, silence.id!)
    expect(await silences()).toHaveLength(1)
    await retireSilence(context, RESOURCE)
    await retireSilence(context, RESOURCE)
    expect(await silences()).toEqual([])
    expect(await acts()).toEqual(['silence.changed', 'silence.changed', 'silence.created', 'silence.removed'])
  })

  it('twice at once creates one silence', async () => {
    const both: ReturnType<typeof declare>[] = []
    await test.database.transaction(async (tx) => {
      await lockOrganization(tx, acme.id)
      both.push(declare(), declare({ comment: 'Second' }))
      await untilWaiting(test, 2)
    })
    const changes = (await Promise.all(both)).map(({ change }) => change)
    expect(changes.toSorted()).toEqual(['created', 'updated'])
    expect(await silences()).toHaveLength(1)
  })

  it('of times that are over makes none, and ends one that is there', async () => {
    const over = { times: { startsAt: now() - 2 * HOUR, endsAt: now() } }
    expect(await declare(over)).toEqual({
      silence: { id: null, activeUntil: null, nextStartsAt: null },
      change: 'unchanged',
    })
    await declare()
    expect(await declare(over)).toMatchObject({ change: 'updated', silence: { activeUntil: null, nextStartsAt: null } })
  })

  it('begins at once, and is over when that is after its end', async () => {
    await declare()
    const [{ at }] = await read('select extract(epoch from starts_at) * 1000 as at from silences')
    expect(Number(at)).toBe(now())
    const late = { resource: { ...RESOURCE, name: 'late' }, times: { endsAt: now() } }
    expect((await declare(late)).silence).toEqual({ id: null, activeUntil: null, nextStartsAt: null })
    expect((await declare({ times: { endsAt: now() - HOUR } })).silence).toMatchObject({ activeUntil: null })
  })

  it('of an old one with another end begins now, and one that holds keeps its beginning', async () => {
    const startsAt = async () =>
      Number((await read('select extract(epoch from starts_at) * 1000 as at from silences'))[0].at)
    await declare({ times: { startsAt: now() - HOUR, endsAt: now() + HOUR } })
    const from = await startsAt()
    await declare({ times: { endsAt: now() + 2 * HOUR } })
    expect(await startsAt()).toBe(from)
    clock.time += 3 * HOUR
    expect((await declare({ times: { endsAt: now() - HOUR } })).change).toBe('unchanged')
    await declare({ times: { endsAt: now() + HOUR } })
    expect(await startsAt()).toBe(now())
    const begun = now()
    clock.time += 1_000
    expect((await declare({ times: { endsAt: begun + HOUR } })).change).toBe('unchanged')
    await declare({ times: { startsAt: now() + HOUR / 2, endsAt: begun + HOUR } })
    await declare({ times: { endsAt: begun + HOUR } })
    expect(await startsAt()).toBe(now())
    await declare({ times: { schedule: '0 2 * * 0', durationSeconds: 60 } })
    await declare({ times: { endsAt: now() + HOUR } })
    expect(await startsAt()).toBe(now())
  })

  it('of a project with the most silences is refused, also for an old one with another end', async () => {
    const named = (name: string) => ({ resource: { ...RESOURCE, name } })
    await declare({ ...named('old'), times: { endsAt: now() + 1_000 } })
    clock.time += 1_000
    for (let count = 1; count < MAX_SILENCES; count += 1) await declare(named(`a-${count}`))
    await declare(named('old'))
    await expect(declare(named('new'))).rejects.toThrow('the maximum')
    await declare({ ...named('old'), times: { endsAt: now() + 1_000 }, comment: 'Soon over' })
    clock.time += 1_000
    await declare(named('new'))
    await expect(declare(named('old'))).rejects.toThrow('the maximum')
  })

  it('while it is retired makes another one', async () => {
    const { silence } = await declare()
    const calls: Promise<unknown>[] = []
    await test.database.transaction(async (tx) => {
      await tx.query('select from silences for update')
      calls.push(retireSilence(context, RESOURCE))
      await untilWaiting(test, 1)
      calls.push(declare({ comment: 'Again' }), retireSilence(context, { ...RESOURCE, name: 'other' }))
      await untilWaiting(test, 2)
    })
    const [, again] = await Promise.all(calls)
    expect(again).toMatchObject({ change: 'created' })
    expect(await silences()).toEqual([{ id: expect.not.stringMatching(silence.id!), comment: 'Again' }])
  })
})

describe('a declared silence covers', () => {
  async function addCheck(labels: object, place = RESOURCE): Promise<number> {
    const other = await acme.addProject(`p-${randomUUID()}`)
    const { rows } = await test.database.query<{ key: number }>(
      `insert into checks (id, public_id, project_id, name, slug, labels, managed_by, kubernetes_cluster,
          kubernetes_namespace, kubernetes_name, created_at)
        values ($1::uuid, $1::uuid, $2, $1::text, $1::text, $3, 'kubernetes', $4, $5, $1::text, now()) returning key`,
      [randomUUID(), other, labels, place.cluster, place.namespace],
    )
    return rows[0]!.key
  }
  const isCovered = async (key: number) => (await findCovering(test.database, [key], now())).length === 1

  const requirement = (operator: Requirement['operator'], ...values: string[]): Requirement => ({
    key: 'a',
    operator,
    values,
  })
  it.each([
    [requirement('In', 'x', 'y'), { x: true, z: false, none: false }],
    [requirement('NotIn', 'x', 'y'), { x: false, z: true, none: true }],
    [requirement('Exists'), { x: true, z: true, none: false }],
    [requirement('DoesNotExist'), { x: false, z: false, none: true }],
  ])('what fulfils %j', async (one, covered) => {
    const keys = {
      x: await addCheck({ a: 'x' }),
      z: await addCheck({ a: 'z', x: 'a' }),
      none: await addCheck({ b: 'x' }),
    }
    await declare({ selector: [one] })
    for (const [name, key] of Object.entries(keys))
      expect([name, await isCovered(key)]).toEqual([name, covered[name as keyof typeof covered]])
    await declare({ selector: [one, { key: 'c', operator: 'Exists', values: [] }] })
    for (const key of Object.values(keys)) expect(await isCovered(key)).toBe(false)
  })

  it('only its namespace, in its cluster, and nothing of the API', async () => {
    const own = await addCheck({})
    const others = [
      await addCheck({}, { ...RESOURCE, namespace: 'other' }),
      await addCheck({}, { ...RESOURCE, cluster: 'other' }),
    ]
    const { rows } = await test.database.query<{ key: number }>(
      `insert into checks (id, public_id, project_id, name, slug, created_at)
        values ($1, $1, $2, 'api', 'api', now()) returning key`,
      [randomUUID(), projectId],
    )
    await declare()
    expect(await isCovered(own)).toBe(true)
    for (const key of [...others, rows[0]!.key]) expect(await isCovered(key)).toBe(false)
  })

  it('and is shown to a caller who sees it, also beside one that the caller does not', async () => {
    const other = await acme.addProject('other')
    const key = await addCheck({})
    const later = { resource: { ...RESOURCE, name: 'later' }, times: { endsAt: now() + 2 * HOUR } }
    await declare()
    await declare({ ...later, projectId: other, comment: 'Of another project' })
    const shownTo = async (projectId: string | null) =>
      (await findSilenceOf(context, { organizationId: acme.id, projectId }, { key }))?.comment
    expect(await shownTo(null)).toBe('Of another project')
    expect(await shownTo(projectId)).toBe('Sundays')
  })

  it('what two indexes find, however many silences there are', async () => {
    await declare()
    const plan = await test.database.transaction(async (tx) => {
      await tx.query('set local enable_seqscan = off')
      const covering = `explain select q.id from checks c join silences q on ${COVERS} where c.key = any($1::int8[])`
      return JSON.stringify((await tx.query(covering, [[1]])).rows)
    })
    expect(plan).toContain('silences_project')
    expect(plan).toContain('silences_resource')
    expect(plan).not.toContain('Seq Scan on silences')
  })
})
