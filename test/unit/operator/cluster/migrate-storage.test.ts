/** On the fake API server, whose contract (test/support/api-contract-writes.ts) says what it stores. The real one: test/cluster/operator/versions.test.ts. */

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createClient, type KubernetesClient } from '../../../../src/kubernetes/client.ts'
import { createStorageMigration, DEFINITIONS, SETTLE_MS } from '../../../../src/operator/cluster/migrate-storage.ts'
import { DEFINITION_NAME } from '../../../../src/operator/names.ts'
import { systemClock } from '../../../../src/runtime/clock.ts'
import {
  type FakeApiServer,
  type FakeType,
  HEARTBEAT_CHECKS,
  type SeenRequest,
  startFakeApiServer,
} from '../../../support/fake-api-server.ts'
import { createManualClock, type ManualClock } from '../../../support/manual-clock.ts'

const CRDS: FakeType = { ...DEFINITIONS, kind: 'CustomResourceDefinition', hasStatus: true }

let server: FakeApiServer
let client: KubernetesClient
let clock: ManualClock
let said: string[]
let migrate: (stopping: AbortSignal) => Promise<void>
let stopping: AbortController

beforeEach(async () => {
  server = await startFakeApiServer({ types: [HEARTBEAT_CHECKS, CRDS] })
  client = createClient({ connection: server.connection, clock: systemClock, random: () => 0 })
  clock = createManualClock()
  said = []
  stopping = new AbortController()
  const say = (_: object, text: string) => said.push(text)
  migrate = createStorageMigration({ client, clock, log: { info: say, warn: say } as never })
})
afterEach(async () => {
  await client.close()
  await server[Symbol.asyncDispose]()
})

const checks = () => server.collection(HEARTBEAT_CHECKS)
const definition = () => server.collection(CRDS)
const storedVersions = () => (definition().get(DEFINITION_NAME).status as { storedVersions: string[] }).storedVersions
const storedAs = (key: string) => checks().get(key).apiVersion!.split('/')[1]
const writes = () => server.requests.filter(({ method }) => method === 'PATCH')

/** The definition stores the last of these versions, and objects may be stored in any of them. */
function define(...stored: string[]): void {
  const storage = stored.at(-1)!
  const versions = ['v1', 'v1alpha1'].map((name) => ({ name, storage: name === storage }))
  if (server.collection(CRDS).list(() => true, 0, null).items.length === 0)
    definition().create({ metadata: { name: DEFINITION_NAME } })
  definition().mergePatch(DEFINITION_NAME, { spec: { versions } })
  definition().mergePatch(DEFINITION_NAME, { status: { storedVersions: stored } }, { subresource: 'status' })
  checks().storeAs(storage)
}

function put(key: string): void {
  const [namespace, name] = key.split('/')
  checks().create({ metadata: { namespace: namespace!, name: name! }, spec: { periodSeconds: 3_600 } })
}

/** One call, with the time that it waits. */
async function run(): Promise<void> {
  const done = migrate(stopping.signal)
  done.catch(() => {})
  await until(() => clock.wakeTimes().length > 0, done)
  await clock.advance(SETTLE_MS)
  await done
}

/** Resolves when `isSo`, or with the end of `done`. */
async function until(isSo: () => boolean, done: Promise<unknown>): Promise<void> {
  let isDone = false
  const end = () => {
    isDone = true
  }
  done.then(end, end)
  await expect.poll(() => isSo() || isDone, { interval: 2 }).toBe(true)
}

describe('stored HeartbeatChecks', () => {
  it('are stored in v1 after an upgrade, in every namespace and on every page, and nothing but that changes', async () => {
    define('v1alpha1')
    for (let number = 0; number < 101; number += 1) put(`shop/check-${number}`)
    put('bank/a')
    define('v1alpha1', 'v1')
    const before = checks().get('bank/a')
    await run()
    expect(
      new Set(
        checks()
          .list(() => true, 0, null)
          .items.map(({ apiVersion }) => apiVersion),
      ),
    ).toEqual(new Set(['heartbeat-operator.io/v1']))
    const { metadata, apiVersion: _, ...rest } = checks().get('bank/a')
    expect({ ...rest, metadata: { ...metadata, resourceVersion: '' } }).toMatchObject({
      spec: before.spec,
      metadata: { ...before.metadata, resourceVersion: '' },
    })
    expect(storedVersions()).toEqual(['v1'])
    expect(said).toEqual(['all HeartbeatChecks are stored in the version of the definition'])
  })

  it('move back when the definition stores v1alpha1, as before a rollback', async () => {
    define('v1')
    put('shop/a')
    define('v1', 'v1alpha1')
    await run()
    expect([storedAs('shop/a'), storedVersions()]).toEqual(['v1alpha1', ['v1alpha1']])
  })

  it('are not written when the definition names their version alone, nor in a cluster without the definition', async () => {
    define('v1')
    put('shop/a')
    await run()
    server.remove(CRDS)
    await run()
    expect(writes()).toEqual([])
    expect(said).toEqual([])
  })

  it('are written when every replica of the API server has had time to know the definition', async () => {
    define('v1alpha1')
    put('shop/a')
    define('v1alpha1', 'v1')
    const done = migrate(stopping.signal)
    await until(() => clock.wakeTimes().length > 0, done)
    await clock.advance(SETTLE_MS - 1)
    expect(writes()).toEqual([])
    await clock.advance(1)
    await done
    expect(storedAs('shop/a')).toBe('v1')
  })

  it('stay as they are when the term as leader ends, and the next one begins anew', async () => {
    define('v1alpha1')
    put('shop/a')
    define('v1alpha1', 'v1')
    const done = migrate(stopping.signal)
    await until(() => clock.wakeTimes().length > 0, done)
    stopping.abort()
    await done
    expect(writes()).toEqual([])
    stopping = new AbortController()
    await run()
    expect(storedVersions()).toEqual(['v1'])
  })

  it('are all listed before the first is written, as the pages of a list expire while they are written', async () => {
    define('v1alpha1')
    for (let number = 0; number < 101; number += 1) put(`shop/check-${number}`)
    define('v1alpha1', 'v1')
    await run()
    const paths = server.requests.map(({ method, isList }) => (isList ? 'list' : method))
    expect(paths.lastIndexOf('list')).toBeLessThan(paths.indexOf('PATCH'))
    expect(paths.filter((one) => one === 'list')).toHaveLength(2)
  })

  it('are one after the other', async () => {
    define('v1alpha1')
    for (const name of ['a', 'b', 'c']) put(`shop/${name}`)
    define('v1alpha1', 'v1')
    let writing = 0
    let most = 0
    const counted = {
      ...client,
      async mergePatch(...args: Parameters<KubernetesClient['mergePatch']>) {
        most = Math.max(most, ++writing)
        await client.mergePatch(...args)
        writing -= 1
      },
    } as unknown as KubernetesClient
    migrate = createStorageMigration({ client: counted, clock, log: { info() {}, warn() {} } as never })
    await run()
    expect(most).toBe(1)
  })
})

describe('the definition', () => {
  const isOf = (name: string) => (request: SeenRequest) => request.method === 'PATCH' && request.path.endsWith(name)

  it('names both versions until every object could be written, and the error says which could not', async () => {
    define('v1alpha1')
    for (const name of ['a', 'b', 'c', 'd', 'e']) put(`shop/${name}`)
    define('v1alpha1', 'v1')
    const undisturb = server.disturb(
      (request) => isOf('/a')(request) || isOf('/c')(request) || isOf('/d')(request) || isOf('/e')(request),
      { status: 422, reason: 'Invalid', message: 'a policy says no' },
      4,
    )
    await expect(run()).rejects.toThrow(
      /^the API server rejects an unchanged write of shop\/a \(.*a policy says no\), shop\/c \(.*\), shop\/d \(.*\) and 1 more: correct or delete these HeartbeatChecks$/,
    )
    undisturb()
    expect(storedVersions()).toEqual(['v1alpha1', 'v1'])
    expect(storedAs('shop/b')).toBe('v1')
    await clock.advance(60_000)
    await run()
    expect(storedVersions()).toEqual(['v1'])
  })

  it('waits for the objects that were rejected, which alone are written again, at most once an hour', async () => {
    define('v1alpha1')
    for (const name of ['a', 'b', 'c']) put(`shop/${name}`)
    define('v1alpha1', 'v1')
    const end = server.disturb(isOf('/b'), { status: 403, reason: 'Forbidden', message: 'a policy says no' }, 1_000)
    const start = clock.now()
    const times: number[] = []
    for (let minute = 0; minute < 135; minute += 1) {
      const seen = writes().length
      await run().catch(() => {})
      if (writes().length > seen) times.push(Math.round((clock.now() - start) / 60_000))
      await clock.advance(start + (minute + 1) * 60_000 - clock.now())
    }
    const gaps = times.slice(1).map((at, n) => at - times[n]!)
    expect(gaps.slice(0, 7)).toEqual([2, 3, 5, 9, 17, 33, 61])
    expect(gaps.every((gap) => gap <= 61)).toBe(true)
    expect(writes().filter(isOf('/a'))).toHaveLength(1)
    end()
    await clock.advance(3_600_000)
    await run()
    expect([storedAs('shop/b'), storedVersions()]).toEqual(['v1', ['v1']])
    expect(writes().filter(isOf('/a'))).toHaveLength(1)
  })

  it('begins with all objects again when it has changed since some were rejected', async () => {
    define('v1alpha1')
    for (const name of ['a', 'b']) put(`shop/${name}`)
    define('v1alpha1', 'v1')
    server.disturb(isOf('/b'), { status: 422, reason: 'Invalid' })
    await expect(run()).rejects.toThrow('shop/b')
    define('v1', 'v1alpha1')
    await run()
    expect([storedAs('shop/a'), storedVersions()]).toEqual(['v1alpha1', ['v1alpha1']])
  })

  it('names one version only when all could be written, also of more rejected ones than are remembered', async () => {
    define('v1alpha1')
    for (let number = 0; number < 1_002; number += 1) put(`shop/check-${number}`)
    define('v1alpha1', 'v1')
    const end = server.disturb(isOf(''), { status: 422, reason: 'Invalid' }, 1_002)
    await expect(run()).rejects.toThrow('and 999 more')
    end()
    await clock.advance(60_000)
    await run()
    const versions = checks()
      .list(() => true, 0, null)
      .items.map(({ apiVersion }) => apiVersion)
    expect(new Set(versions)).toEqual(new Set(['heartbeat-operator.io/v1']))
    expect(storedVersions()).toEqual(['v1'])
  })

  it('is not changed for an object that was deleted meanwhile', async () => {
    define('v1alpha1')
    put('shop/a')
    define('v1alpha1', 'v1')
    server.disturb(isOf('/a'), { status: 404, reason: 'NotFound' })
    await run()
    expect(storedVersions()).toEqual(['v1'])
  })

  it('that has changed since it was read is a Conflict, and is looked at again', async () => {
    define('v1alpha1')
    put('shop/a')
    define('v1alpha1', 'v1')
    const done = migrate(stopping.signal)
    done.catch(() => {})
    await until(() => clock.wakeTimes().length > 0, done)
    // It is turned round while the migration waits.
    define('v1', 'v1alpha1')
    await clock.advance(SETTLE_MS)
    await expect(done).rejects.toMatchObject({ reason: 'Conflict' })
    expect(storedVersions()).toEqual(['v1', 'v1alpha1'])
    await run()
    expect([storedAs('shop/a'), storedVersions()]).toEqual(['v1alpha1', ['v1alpha1']])
  })

  it('that may not be read is reported once, with what to do', async () => {
    define('v1alpha1', 'v1')
    server.disturb(({ path }) => path.includes('customresourcedefinitions'), { status: 403, reason: 'Forbidden' }, 9)
    await run()
    await run()
    expect(said).toEqual([
      expect.stringMatching(
        /^the right to get customresourcedefinitions\/heartbeatchecks\.heartbeat-operator\.io and to patch its status is missing: apply the rights of this release/,
      ),
    ])
    expect(storedVersions()).toEqual(['v1alpha1', 'v1'])
  })
})
