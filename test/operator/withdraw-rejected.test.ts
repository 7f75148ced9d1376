/** What becomes of the data of others in a published object when the operator may not take its own part out (design, section 6, "Deleting"). */

import { describe, expect, it } from 'vitest'
import { createFinalizer, MAX_CLEANUP_MS } from '../../src/operator/deletion/finalize.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { clientOf } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { workIn } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const t = useScene()

const HANDED_OVER = { 'heartbeat-operator.io/adopt': 'true' }
const NOTE = { note: Buffer.from('of others').toString('base64') }
const RIGHT = 'kubectl create rolebinding heartbeat-operator-publisher -n'

/** A resource that publishes into a Secret of others. */
async function share(name: string, spec = {}) {
  await t.place.put('secrets', { metadata: { name: `${name}-heartbeat`, annotations: HANDED_OVER }, data: NOTE })
  await t.place.makeReady(name, { periodSeconds: 3_600, ...spec })
}

const dataOf = async (name: string) => (await t.place.find('secrets', `${name}-heartbeat`))?.data
const isGone = async (name: string) => (await t.cluster.api('GET', t.place.pathOf(name))).status === 404

/** The API server rejects all requests for its Secret as RBAC does, or only its writes; until the returned function is called. */
function forbid(name: string, isRejected = (_method: string) => true): () => void {
  const user = 'User "system:serviceaccount:heart:beat" cannot get resource "secrets"'
  const message = `secrets "${name}-heartbeat" is forbidden: ${user} in API group "" in the namespace "${t.place.name}"`
  return t.cluster.server.disturb(
    ({ method, path }) =>
      isRejected(method) && (path.endsWith(`/${name}-heartbeat`) || path.endsWith(`/secrets/${name}`)),
    { status: 403, reason: 'Forbidden', message },
    1_000,
  )
}

describe('a resource that is deleted without the right to its Secret', () => {
  for (const deletionPolicy of ['Delete', 'Retain'])
    it(`waits for the right, so that the data of others stays: ${deletionPolicy}`, async () => {
      const name = `waits-${deletionPolicy.toLowerCase()}`
      await share(name, { deletionPolicy })
      const allow = forbid(name)
      await t.cluster.api('DELETE', t.place.pathOf(name))
      const { type, note } = await t.place.event(name, 'CleanupRejected')
      expect(type).toBe('Warning')
      expect(note).toContain(`Secret ${name}-heartbeat cannot be released without the right to`)
      expect(note).toContain(`${RIGHT} ${t.place.name} --clusterrole=heartbeat-operator-publisher`)
      expect(note).toContain('with all its data')
      expect(await isGone(name)).toBe(false)
      allow()
      await eventually('the resource is gone', () => isGone(name))
      const left = await t.place.find('secrets', `${name}-heartbeat`)
      expect(left?.metadata.ownerReferences).toBeUndefined()
      expect(left?.data).toMatchObject(NOTE)
      expect('HEARTBEAT_URL' in left!.data!).toBe(deletionPolicy === 'Retain')
    })

  it('goes at once when the Secret holds only its URL, or is gone: the garbage collector takes no data of others', async () => {
    for (const name of ['only-url', 'missing']) await t.place.makeReady(name)
    await t.cluster.api('DELETE', `/api/v1/namespaces/${t.place.name}/secrets/missing-heartbeat`)
    const allow = forbid('only-url', (method) => method !== 'GET')
    for (const name of ['only-url', 'missing']) await t.place.delete(name)
    allow()
    await eventually('the Secret is collected', async () => (await dataOf('only-url')) === undefined)
    expect((await t.place.events('only-url')).map(({ reason }) => reason)).not.toContain('CleanupRejected')
  })

  it('waits ten minutes at most, and says once what the garbage collector then does', async () => {
    await share('limited')
    await t.operator().stop()
    await using client = clientOf(t.cluster.connection)
    const events: string[] = []
    let now = systemClock.now()
    let isDatabaseAway = true
    const database = () => {
      if (isDatabaseAway) throw new Error('the database is away')
      return t.app.database
    }
    const finalize = createFinalizer({
      client,
      context: {
        get database() {
          return database()
        },
        clock: systemClock,
      },
      cluster: 'default',
      recorder: { record: (_, { reason, note }) => events.push(`${reason}: ${note}`) },
      now: () => now,
      onFinalizerForced: () => {},
    })
    await t.cluster.api('DELETE', t.place.pathOf('limited'))
    const allow = forbid('limited')
    // Another problem comes first, and has no such Event.
    await expect(finalize(await t.place.get('limited'))).rejects.toThrow('away')
    expect(events).toEqual([])
    isDatabaseAway = false
    const fails = async () => expect(finalize(await t.place.get('limited'))).rejects.toThrow('limited-heartbeat')
    await fails()
    now += MAX_CLEANUP_MS - 1
    await fails()
    now += 1
    await finalize(await t.place.get('limited'))
    allow()
    expect(await isGone('limited')).toBe(true)
    expect(events.map((event) => event.split(':')[0])).toEqual(['CleanupRejected', 'CleanupTimeout'])
    expect(events[1]).toContain('Secret limited-heartbeat could not be released for 10 minutes')
    expect(events[1]).toContain('with all its data')
    await t.restart()
  })
})

it('a resource in a namespace that is being deleted waits for no right: its Secret goes with the namespace', async () => {
  const path = '/api/v1/namespaces/ending'
  await t.cluster.api('POST', '/api/v1/namespaces', { metadata: { name: 'ending', finalizers: ['example.com/stay'] } })
  const place = workIn(t.cluster, 'ending')
  await place.put('secrets', { metadata: { name: 'shared', annotations: HANDED_OVER }, data: NOTE })
  await place.makeReady('a', { periodSeconds: 3_600, publish: { name: 'shared' } })
  await t.cluster.api('DELETE', path)
  const allow = forbid('shared')
  await place.delete('a')
  allow()
  expect((await place.events('a')).map(({ reason }) => reason)).not.toContain('CleanupRejected')
})
