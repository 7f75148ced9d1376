import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Requirement } from '../../../src/domain/label-selector.ts'
import { declareSilence, retireSilence, type SilenceDeclaration } from '../../../src/silences/declare-silence.ts'
import { findCovering } from '../../../src/store/silences/silences.ts'
import { lockOrganization } from '../../../src/store/tenancy/organizations.ts'
import { HOUR } from '../../support/builders.ts'
import { untilWaiting } from '../../support/database.ts'
import { useEach } from '../../support/use.ts'
import { useOrganization } from '../auth/fixtures.ts'
import { contextOf } from '../channels/fixture.ts'

const { test, organization: acme } = useOrganization()
const context = useEach(() => contextOf(test.database))
const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'sundays' }
let projectId: string
beforeEach(async () => {
  projectId = await acme.addProject('payments')
})

const now = () => context.clock.now()
const declare = (given: Partial<SilenceDeclaration> = {}) =>
  declareSilence(context, {
    ...{ resource: RESOURCE, projectId, resourceCreatedAt: now() - HOUR, selector: [], comment: 'Sundays' },
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
    expect([silence?.activeUntil, change]).toEqual([now() + HOUR, 'created'])
    expect((await declare()).change).toBe('unchanged')
    for (const given of [{ comment: 'Other' }, { times: { endsAt: now() + 2 * HOUR }, comment: 'Other' }])
      expect(await declare(given)).toMatchObject({ change: 'updated', silence: { id: silence!.id } })
    expect(await silences()).toEqual([{ id: silence!.id, comment: 'Other' }])
    await retireSilence(context, RESOURCE, silence!.id)
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
    expect(await declare(over)).toEqual({ silence: null, change: 'unchanged' })
    await declare()
    expect(await declare(over)).toMatchObject({ change: 'updated', silence: { activeUntil: null, nextStartsAt: null } })
  })

  it('begins with its resource, and not after its end', async () => {
    await declare({ resourceCreatedAt: now() - 3 * HOUR })
    const [{ from }] = await read('select extract(epoch from starts_at) * 1000 as from from silences')
    expect(Number(from)).toBe(now() - 3 * HOUR)
    expect((await declare({ times: { endsAt: now() - HOUR }, resourceCreatedAt: now() })).silence).toMatchObject({
      activeUntil: null,
    })
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
})
