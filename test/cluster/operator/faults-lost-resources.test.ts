/** Resources that come back, and resources that were lost: what becomes of their checks. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listStates } from '../../../src/checks/declare/find-declared.ts'
import type { HeartbeatCheck } from '../../../src/operator/heartbeat-check.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { Context } from '../../../src/store/context.ts'
import { cluster, type TestNamespace, waitFor } from '../../support/cluster.ts'
import { createTestDatabase, type TestDatabase } from '../../support/database.ts'
import { startTestOperator, type TestOperatorOptions } from '../../support/operator.ts'
import { type Checks, checksOf, connectBy, type PingPort, readMetric, startPingPort, whenLeading } from './stage.ts'

let testDatabase: TestDatabase
let pings: PingPort
let namespace: TestNamespace
let checks: Checks

beforeAll(async () => {
  testDatabase = await createTestDatabase()
  pings = await startPingPort(testDatabase)
})
afterAll(async () => {
  await pings?.[Symbol.asyncDispose]()
  await testDatabase?.close()
})
beforeEach(async () => {
  namespace = await cluster.makeNamespace()
  checks = checksOf(cluster, namespace.name)
})
afterEach(() => namespace?.remove())

function startOperator(changes: TestOperatorOptions['changes'] = {}) {
  return startTestOperator({
    kubeconfig: cluster.kubeconfigPath,
    testDatabase,
    leaseNamespace: 'default',
    changes: { namespaces: [namespace.name], pollMs: 200, pingUrl: () => pings.url, ...changes },
  })
}

const ping = async (url: string) => (await fetch(url)).status

async function namesWithChecks(): Promise<string[]> {
  const states = await listStates({ database: testDatabase.database, clock: systemClock }, 'default')
  return states.filter((state) => state.namespace === namespace.name).map(({ name }) => name)
}

async function secretOf(name: string) {
  return (await cluster.api('GET', `/api/v1/namespaces/${namespace.name}/secrets/${name}-heartbeat`)).body
}

/** Resolves when the Secret is the new resource's, and the garbage collector has no reason left to take it. */
function whenOwnedBy(name: string, { metadata: { uid } }: HeartbeatCheck) {
  return waitFor(
    'the Secret belongs to the new resource',
    async () => {
      const { metadata } = await secretOf(name)
      return metadata.ownerReferences[0].uid === uid && metadata.deletionTimestamp === undefined
    },
    20_000,
  )
}

describe('a resource that is deleted and applied again at once', () => {
  it('keeps its check, and its Secret is not collected with the old one', async () => {
    await using _ = await startOperator()
    await checks.apply('nightly')
    const before = await checks.whenReady('nightly')
    const url = await checks.urlOf('nightly')
    expect(await ping(url)).toBe(200)

    await checks.remove('nightly')
    const again = await checks.apply('nightly')
    expect(again.metadata.uid).not.toBe(before.metadata.uid)
    const after = await checks.whenReady('nightly')
    expect(after.status?.checkId).toBe(before.status?.checkId)
    expect(await ping(url)).toBe(200)
    await whenOwnedBy('nightly', again)
    expect(await checks.urlOf('nightly')).toBe(url)
  })

  it('by force, while nobody leads, keeps even the state of its check', async () => {
    await using first = await startOperator()
    await checks.apply('nightly')
    const before = await checks.whenReady('nightly')
    const url = await checks.urlOf('nightly')
    await first.stop()
    expect(await ping(url)).toBe(200)

    await checks.forceAway('nightly')
    const again = await checks.apply('nightly')
    await using _ = await startOperator()
    const after = await checks.whenReady('nightly')
    expect(after.status).toMatchObject({ checkId: before.status?.checkId, state: 'up' })
    await whenOwnedBy('nightly', again)
    expect(await checks.urlOf('nightly')).toBe(url)
  })
})

describe('a namespace that is deleted', () => {
  it('takes its checks along, and finds them again when it is made again', async () => {
    await using _ = await startOperator()
    for (const name of ['one', 'two']) await checks.apply(name)
    for (const name of ['one', 'two']) await checks.whenReady(name)
    const url = await checks.urlOf('one')

    await cluster.api('DELETE', `/api/v1/namespaces/${namespace.name}`)
    await waitFor(
      'it is gone',
      async () => (await cluster.api('GET', `/api/v1/namespaces/${namespace.name}`)).status === 404,
      30_000,
    )
    expect(await namesWithChecks()).toEqual([])
    expect(await ping(url)).toBe(404)

    await cluster.api('POST', '/api/v1/namespaces', { metadata: { name: namespace.name } })
    await checks.apply('one')
    await checks.whenReady('one')
    expect(await checks.urlOf('one')).toBe(url)
    expect(await ping(url)).toBe(200)
  })
})

describe('a resource that was lost without its finalizer', () => {
  it('has its check collected after the time for that, and not before', async () => {
    const orphanMs = 2_000
    await using first = await startOperator()
    for (const name of ['kept', 'lost']) await checks.apply(name)
    for (const name of ['kept', 'lost']) await checks.whenReady(name)
    const url = await checks.urlOf('lost')
    // While one leads, its finalizer would be done before it could be taken off.
    await first.stop()
    await checks.forceAway('lost')

    const noticedAt = performance.now()
    await using operator = await startOperator({ orphanMs })
    await whenLeading(operator)
    expect(await ping(url)).toBe(200)
    await waitFor('its check is collected', async () => !(await namesWithChecks()).includes('lost'))
    expect(performance.now() - noticedAt).toBeGreaterThan(orphanMs)
    expect(await ping(url)).toBe(404)
    expect(await namesWithChecks()).toEqual(['kept'])
    expect(await readMetric(operator, 'heartbeat_orphans_total')).toBe(1)
  })

  it('keeps its check while the list of resources is not whole', async () => {
    await using first = await startOperator()
    for (const name of ['kept', 'lost']) await checks.apply(name)
    for (const name of ['kept', 'lost']) await checks.whenReady(name)
    await first.stop()
    await checks.forceAway('lost')

    await using direct = await connectBy(cluster.kubeconfigPath)
    let isWhole = false
    const client: typeof direct = {
      ...direct,
      // One object a page, and no second page.
      async list(type, options) {
        if (options?.continueToken !== undefined && !isWhole) throw new Error('the list broke off')
        return direct.list(type, { ...options, limit: 1 })
      },
    }
    await checks.apply('another')
    let polls = 0
    const { database } = testDatabase
    const context: Context = {
      clock: systemClock,
      database: {
        ...database,
        queryColumns(statement) {
          if (statement.name === 'list_declared_states') polls += 1
          return database.queryColumns(statement)
        },
      },
    }
    await using second = await startOperator({ client, context, orphanMs: 0, random: () => 0 })
    await whenLeading(second)
    await waitFor('some polls', () => polls > 3)
    expect(await namesWithChecks()).toEqual(['kept', 'lost'])
    isWhole = true
    await waitFor('its check is collected', async () => !(await namesWithChecks()).includes('lost'), 20_000)
    expect(await namesWithChecks()).toContain('kept')
  })
})

describe('a check that was lost from the database', () => {
  it('is made again within a poll', async () => {
    await using _ = await startOperator()
    await checks.apply('nightly')
    const { status } = await checks.whenReady('nightly')
    await testDatabase.database.query('delete from checks where id = $1', [status?.checkId])
    await waitFor('there is another', async () => {
      const found = await checks.find('nightly')
      return found?.status?.checkId !== undefined && found.status.checkId !== status?.checkId
    })
    expect(await ping(await checks.urlOf('nightly'))).toBe(200)
  })
})
