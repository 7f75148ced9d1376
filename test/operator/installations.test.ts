/** F1: two installations, that is two databases, on one cluster (design, section 6). */

import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { fasterClock, listen, readMetric, type TestOperator } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { conflicts, idOf, useTwoInstallations } from './two-installations.ts'

const { cluster, one, two, place, start, checkOf } = useTwoInstallations()
const writesBy = (from: number) =>
  cluster.server.requests.slice(from).filter(({ method, path }) => method !== 'GET' && path.includes(place.name))
/** Each operator has reconciled something after a change of the resource that means nothing. */
async function reconciledBy(name: string, ...operators: readonly TestOperator[]): Promise<void> {
  const count = (operator: TestOperator) => readMetric(operator, 'controller_runtime_reconcile_total')
  const before = await Promise.all(operators.map(count))
  await place.change(name, { metadata: { annotations: { touched: String(before) } } })
  await eventually(`${name} was reconciled`, async () => {
    const after = await Promise.all(operators.map(count))
    return after.every((number, index) => number > before[index]!)
  })
}
/** The operator, without others, has read the published object of a foreign resource again, and has done what follows from it. */
async function looksAt(name: string, operator: TestOperator): Promise<void> {
  const path = `/secrets/${name}-heartbeat`
  const count = () => cluster.server.requests.filter((seen) => seen.method === 'GET' && seen.path.endsWith(path)).length
  const before = count()
  await reconciledBy(name, operator)
  await eventually(`${name} is looked at`, () => count() > before)
  await reconciledBy(name, operator)
}
const stalledReason = async (name: string) => (await place.condition(name, 'Stalled'))?.reason

/** Ready in installation one, whose operator has stopped. */
async function makeInOne(name: string, spec?: object): Promise<{ url: string; id: string }> {
  await using _first = await start(one)
  const { status } = await place.makeReady(name, spec)
  expect(status?.installation).toBe(await idOf(one))
  return { url: await place.pingUrl(name), id: status!.checkId! }
}

describe('a resource of another installation', () => {
  it('F1: is left alone, with Stalled, an Event, an error in the log and a metric; its owner goes on', async () => {
    await using _first = await start(one, { resyncMs: 600_000 })
    const { status } = await place.makeReady('nightly')
    const url = await place.pingUrl('nightly')
    const { said, log } = listen()
    await using second = await start(two, { log })
    const event = await place.event('nightly', 'ManagedElsewhere')
    expect(event).toMatchObject({ type: 'Warning' })
    expect(event.note).toContain(`heartbeat-operator.io/take-over: ${await idOf(one)}`)
    expect(said.filter((line) => line.startsWith('this cluster has HeartbeatChecks of another'))).toHaveLength(1)
    expect(await conflicts(second)).toBe(1)

    // The owner puts its conditions back, and they are not written again.
    const back = await eventually('the owner has put it right', async () => {
      const object = await place.get('nightly')
      return conditionOf(object, 'Ready')?.status === 'True' && object
    })
    expect(conditionOf(back, 'Stalled')).toBeUndefined()
    const { lastTransitionTime: _, ...condition } = conditionOf(back, 'Ready')!
    expect(condition).toMatchObject({ reason: 'Synced' })
    expect(back.status).toMatchObject({ installation: await idOf(one), checkId: status?.checkId })
    const from = cluster.server.requests.length
    await place.apply('nightly', { periodSeconds: 60 })
    await place.ready('nightly')
    await reconciledBy('nightly', second)
    expect(await stalledReason('nightly')).toBeUndefined()
    expect(writesBy(from).filter(({ body }) => body.includes('ManagedElsewhere'))).toEqual([])
    expect(await place.pingUrl('nightly')).toBe(url)
    expect(await checkOf(two, 'nightly')).toEqual([])
    expect(await conflicts(second)).toBe(1)

    await place.delete('nightly')
    await eventually('it is no conflict any more', async () => (await conflicts(second)) === 0)
  })

  it('has one Event, also after a restart of the operator that does not have it', async () => {
    await makeInOne('again')
    for (const _ of ['first', 'second']) {
      // A stop writes the Events that wait.
      await using second = await start(two)
      await reconciledBy('again', second)
    }
    const events = await place.events('again')
    expect(events.filter(({ reason }) => reason === 'ManagedElsewhere')).toHaveLength(1)
  })

  it('F1: gets the conditions Ready and Stalled and no other change, once', async () => {
    const { url } = await makeInOne('stopped')
    const before = await place.get('stopped')
    const from = cluster.server.requests.length
    await using second = await start(two)
    const message = await place.stalled('stopped', 'ManagedElsewhere')
    expect(message).toContain(await idOf(one))
    const { status, metadata } = await place.get('stopped')
    const others = (conditions = before.status?.conditions) =>
      conditions?.filter(({ type }) => type !== 'Ready' && type !== 'Stalled')
    expect(others(status?.conditions)).toEqual(others())
    expect(status).toMatchObject({ ...before.status, conditions: expect.anything() })
    expect(conditionOf({ ...before, status: status! }, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'ManagedElsewhere',
    })
    expect(metadata.finalizers).toEqual(before.metadata.finalizers)
    expect(await place.pingUrl('stopped')).toBe(url)

    // Neither a poll, nor a resync, nor a change of the resource writes it again.
    await place.apply('stopped', { periodSeconds: 60 })
    await place.makeReady('ours')
    const isOfStopped = ({ path }: { path: string }) => path.includes('/stopped')
    const reads = () =>
      cluster.server.requests.filter(({ method, path }) => method === 'GET' && path.includes('/ours-'))
    const readBefore = reads().length
    await eventually('a resync and some polls are over', () => reads().length > readBefore)
    await reconciledBy('stopped', second)
    expect(
      writesBy(from)
        .filter(isOfStopped)
        .map(({ method, path }) => `${method} ${path.split('/').at(-1)}`),
    ).toEqual(
      // The status by the operator, and the rest by this test.
      ['PATCH status', 'PATCH stopped', 'PATCH stopped'],
    )
    expect(await conflicts(second)).toBe(1)
    await second.stop()
    expect(await conflicts(second)).toBe(0)

    // The next start reports the new generation; the one after it finds the conditions as they are.
    for (const [name, writes] of [
      ['b', 1],
      ['c', 0],
    ] as const) {
      const next = cluster.server.requests.length
      await using leader = await start(two)
      await eventually('it has seen it', async () => (await conflicts(leader)) === 1)
      await place.makeReady(name)
      expect(writesBy(next).filter(isOfStopped)).toHaveLength(writes)
    }
  })

  it('F1: keeps its finalizer when it is deleted, until its owner is back', async () => {
    const { id } = await makeInOne('going')
    await using second = await start(two)
    await place.stalled('going', 'ManagedElsewhere')
    await cluster.api('DELETE', place.pathOf('going'))
    await place.makeReady('later')
    expect((await place.get('going')).metadata.finalizers).toEqual(['heartbeat-operator.io/cleanup'])
    expect(await place.find('secrets', 'going-heartbeat')).not.toBeNull()
    await second.stop()

    await using _first = await start(one)
    await place.gone('going')
    expect(await checkOf(one, 'going')).toEqual([`tombstone ${id}`])
  })
})

describe('a status that names another installation', () => {
  it('removes no check while the published object holds our URL, cannot be read or is gone', async () => {
    await using first = await start(one, { resyncMs: 180_000, clock: fasterClock(8) })
    const { status } = await place.makeReady('forged')
    const url = await place.pingUrl('forged')
    await place.makeReady('bait')
    // A Secret with another URL, which the forger names as the published one.
    const published = { kind: 'Secret', name: 'bait-heartbeat' }
    const forged = { installation: randomUUID(), checkId: 'x', published }
    await cluster.api('PATCH', `${place.pathOf('forged')}/status`, { status: forged })
    await eventually('it is reported', async () => (await conflicts(first)) >= 1)
    await place.event('forged', 'ManagedElsewhere')
    const isArmed = async () => {
      const { rows } = await one.database.query(
        'select from checks join check_states on check_key = key where id = $1 and due_at is not null',
        [status!.checkId],
      )
      return rows.length === 1
    }
    expect(await isArmed()).toBe(true)

    const read = ({ method, path }: { method: string; path: string }) =>
      method === 'GET' && path.endsWith('/secrets/forged-heartbeat')
    const allow = cluster.server.disturb(read, { status: 403 }, 1_000)
    await looksAt('forged', first)
    allow()
    expect(await isArmed()).toBe(true)
    // An object with another URL that is not of this resource proves nothing.
    const data = { HEARTBEAT_URL: Buffer.from(await place.pingUrl('bait')).toString('base64') }
    await place.patch('secrets', 'forged-heartbeat', { metadata: { ownerReferences: null, labels: null }, data })
    await looksAt('forged', first)
    expect(await isArmed()).toBe(true)
    await cluster.api('DELETE', `/api/v1/namespaces/${place.name}/secrets/forged-heartbeat`)
    await looksAt('forged', first)
    expect(await isArmed()).toBe(true)

    const back = { installation: await idOf(one), checkId: status!.checkId }
    await cluster.api('PATCH', `${place.pathOf('forged')}/status`, { status: back })
    await eventually('it has its URL again', async () => (await place.pingUrl('forged')) === url)
  })

  it('leaves the check to the previous owner until the new one can publish its URL', async () => {
    await using first = await start(one)
    const { status } = await place.makeReady('blocked')
    const url = await place.pingUrl('blocked')
    await place.patch('secrets', 'blocked-heartbeat', { immutable: true })
    await using _second = await start(two)
    await place.event('blocked', 'ManagedElsewhere')
    const annotations = { 'heartbeat-operator.io/take-over': await idOf(one) }
    await place.change('blocked', { metadata: { annotations } })
    await place.stalled('blocked', 'PublishRefused')
    expect((await place.get('blocked')).status?.installation).toBe(await idOf(two))
    await eventually('it has left it', async () => (await conflicts(first)) === 1)
    await reconciledBy('blocked', first)
    expect(await place.pingUrl('blocked')).toBe(url)
    expect(await checkOf(one, 'blocked')).toEqual([`check ${status?.checkId}`])
    // Nor does its own URL prove that, by which it published before its PING_URL was changed.
    await first.stop()
    await using again = await start(one, { pingUrl: () => 'http://one-of-now' })
    await eventually('it has left it', async () => (await conflicts(again)) === 1)
    for (let times = 0; times < 2; times += 1) await reconciledBy('blocked', again)
    expect(await checkOf(one, 'blocked')).toEqual([`check ${status?.checkId}`])

    await cluster.api('DELETE', `/api/v1/namespaces/${place.name}/secrets/blocked-heartbeat`)
    await place.ready('blocked')
    expect(await place.pingUrl('blocked')).toMatch(/^http:\/\/two\//)
    await eventually('the previous owner ends its check', async () => {
      return (await checkOf(one, 'blocked'))[0] === `tombstone ${status?.checkId}`
    })
  })
})

describe('a takeover', () => {
  it('by the annotation moves one resource, retires the check of the previous owner, and can be undone with the same URL', async () => {
    await using first = await start(one)
    const { status } = await place.makeReady('moved')
    await place.makeReady('kept')
    const url = await place.pingUrl('moved')
    await using second = await start(two)
    await place.event('kept', 'ManagedElsewhere')
    const [idOfOne, idOfTwo] = [await idOf(one), await idOf(two)]

    await place.change('moved', { metadata: { annotations: { 'heartbeat-operator.io/take-over': idOfOne } } })
    const event = await place.event('moved', 'TakenOver')
    expect(event.note).toContain(idOfOne)
    // It comes when the URL is published.
    expect(await place.pingUrl('moved')).toMatch(/^http:\/\/two\//)
    const moved = await place.ready('moved')
    expect(moved.status?.installation).toBe(idOfTwo)
    expect(await place.pingUrl('moved')).toMatch(/^http:\/\/two\//)
    const tombstone = `tombstone ${status?.checkId}`
    await eventually('the previous owner has no check of it, and keeps its identity', async () => {
      return String(await checkOf(one, 'moved')) === tombstone
    })
    // The annotation stays, and means nothing to either of them.
    for (let times = 0; times < 3; times += 1) await reconciledBy('moved', first, second)
    expect((await place.get('moved')).status?.installation).toBe(idOfTwo)
    expect(await conflicts(first)).toBe(1)
    expect(await conflicts(second)).toBe(1)
    expect((await place.get('kept')).status?.installation).toBe(idOfOne)

    await place.change('moved', { metadata: { annotations: { 'heartbeat-operator.io/take-over': idOfTwo } } })
    await eventually('it is back', async () => (await place.get('moved')).status?.installation === idOfOne)
    await eventually('its URL is as before', async () => (await place.pingUrl('moved')) === url)
    expect((await place.ready('moved')).status?.checkId).toBe(status?.checkId)
    await eventually('nothing is left in two', async () => (await checkOf(two, 'moved'))[0]?.startsWith('tombstone'))
  })

  it('by TAKE_OVER moves all resources of one installation', async () => {
    const before = { a: await makeInOne('a'), b: await makeInOne('b') }
    await using second = await start(two, { takeOver: await idOf(one) })
    for (const name of ['a', 'b'] as const) {
      await eventually(`${name} is taken over`, async () => {
        return (await place.get(name)).status?.installation === (await idOf(two))
      })
      await place.ready(name)
      // With the public id of its Secret: where only the database was replaced, the URL stays.
      expect(await place.pingUrl(name)).toBe(before[name].url.replace('http://one/', 'http://two/'))
    }
    expect(await conflicts(second)).toBe(0)
    // No check was lost: each is where it was.
    for (const name of ['a', 'b']) {
      expect((await place.event(name, 'TakenOver')).note).toContain('its history stays with the previous installation')
      expect((await place.events(name)).filter(({ reason }) => reason === 'CheckLost')).toEqual([])
    }

    // The previous installation comes back later: its checks must not alarm.
    await using first = await start(one)
    await eventually('both are conflicts', async () => (await conflicts(first)) === 2)
    for (const name of ['a', 'b']) {
      await eventually('its check is removed', async () => (await checkOf(one, name))[0]?.startsWith('tombstone'))
      expect(await place.pingUrl(name)).toMatch(/^http:\/\/two\//)
    }
  })

  it('of a resource that adopted a check here stalls from the start, with a check that watches over its job', async () => {
    const { id, url } = await makeInOne('plain')
    // As after an adoption: the annotation stays on the resource.
    await place.change('plain', { metadata: { annotations: { 'heartbeat-operator.io/adopt-check-id': id } } })
    const from = cluster.server.requests.length
    await using second = await start(two, { takeOver: await idOf(one) })
    expect(await place.stalled('plain', 'AdoptionRefused')).toContain('remove the id to adopt')
    expect(await place.pingUrl('plain')).toBe(url.replace('http://one/', 'http://two/'))
    const statuses = writesBy(from).filter(({ path }) => path.endsWith('/plain/status'))
    expect(statuses.filter(({ body }) => body.includes('"Synced"'))).toEqual([])
    for (let times = 0; times < 3; times += 1) await reconciledBy('plain', second)
    expect(await stalledReason('plain')).toBe('AdoptionRefused')
    await place.change('plain', { metadata: { annotations: { 'heartbeat-operator.io/adopt-check-id': null } } })
    await place.ready('plain')
    expect(await checkOf(two, 'plain')).toHaveLength(1)
  })

  it('two installations that name each other do not alternate', async () => {
    await makeInOne('both')
    const [idOfOne, idOfTwo] = [await idOf(one), await idOf(two)]
    await using second = await start(two, { takeOver: idOfOne })
    await eventually('two has it', async () => (await place.get('both')).status?.installation === idOfTwo)
    await using _first = await start(one, { takeOver: idOfTwo })
    await eventually('one has it back', async () => (await place.get('both')).status?.installation === idOfOne)
    await eventually('two reports it', async () => (await conflicts(second)) === 1)
    for (let times = 0; times < 3; times += 1) await reconciledBy('both', second)
    expect((await place.get('both')).status?.installation).toBe(idOfOne)
  })

  it('of a resource whose specification makes no sense is once, though nothing is published', async () => {
    await makeInOne('senseless')
    await place.change('senseless', { spec: { periodSeconds: null, schedule: '99 * * * *' } })
    await using second = await start(two, { takeOver: await idOf(one) })
    const event = await place.event('senseless', 'TakenOver')
    expect(event.note).not.toContain('the check is a new one')
    expect(await stalledReason('senseless')).toBe('InvalidSpec')
    for (let times = 0; times < 2; times += 1) await reconciledBy('senseless', second)
    expect((await place.get('senseless')).status?.installation).toBe(await idOf(two))
    expect(await checkOf(two, 'senseless')).toEqual([])
    expect((await place.events('senseless')).filter(({ reason }) => reason === 'TakenOver')).toHaveLength(1)
  })

  it('of a resource that is being deleted finishes its deletion', async () => {
    await makeInOne('stuck')
    await using _second = await start(two)
    await place.stalled('stuck', 'ManagedElsewhere')
    await cluster.api('DELETE', place.pathOf('stuck'))
    await place.change('stuck', { metadata: { annotations: { 'heartbeat-operator.io/take-over': await idOf(one) } } })
    await place.gone('stuck')
    await eventually('its Secret too', async () => (await place.find('secrets', 'stuck-heartbeat')) === null)
  })
})

describe('without a conflict', () => {
  it('a database that was restored from before it had an id keeps its checks armed, and takes its resources back', async () => {
    const { id, url } = await makeInOne('restored')
    const former = await idOf(one)
    await one.database.query('update installation set id = gen_random_uuid()')
    await using again = await start(one, { pingUrl: () => 'http://moved' })
    await place.stalled('restored', 'ManagedElsewhere')
    expect(await checkOf(one, 'restored')).toEqual([`check ${id}`])
    await again.stop()

    await using _third = await start(one, { takeOver: former })
    const { status } = await place.ready('restored')
    expect((await place.event('restored', 'TakenOver')).note).not.toContain('history')
    expect(status).toMatchObject({ checkId: id, installation: await idOf(one) })
    expect(await place.pingUrl('restored')).toBe(url)
  })
})
