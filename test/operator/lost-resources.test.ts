/** Resources that come back, and resources that were lost: what becomes of their checks. */

import { describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../src/operator/heartbeat-check.ts'
import type { OperatorOptions } from '../../src/operator/operator.ts'
import { listDeclaredStates } from '../../src/store/checks/declared-checks.ts'
import { startTestApp } from '../support/app.ts'
import { startFakeCluster } from '../support/fake-cluster.ts'
import { readMetric, startTestOperator, testDatabaseOf, whenLeading } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { use, useEach } from '../support/use.ts'
import { openWorkplace } from '../support/workplace.ts'

const cluster = use(startFakeCluster)
const app = use(startTestApp)
const place = useEach(() => openWorkplace(cluster))

async function startOperator(changes: Partial<OperatorOptions> = {}) {
  return startTestOperator({
    connection: cluster.connection,
    testDatabase: await testDatabaseOf(app),
    changes: { namespaces: [place.name], pollMs: 100, pingUrl: () => app.pingUrl, ...changes },
  })
}

const ping = async (url: string) => (await fetch(url)).status

async function namesWithChecks(): Promise<string[]> {
  const states = await listDeclaredStates(app.database, 'default')
  return states.filter((state) => state.namespace === place.name).map(({ name }) => name)
}

/** Resolves when the Secret is the new resource's, and the garbage collector has no reason left to take it. */
function whenOwnedBy(name: string, { metadata: { uid } }: HeartbeatCheck) {
  return eventually('the Secret belongs to the new resource', async () => {
    const secret = await place.find('secrets', `${name}-heartbeat`)
    return secret?.metadata.ownerReferences?.[0]?.uid === uid
  })
}

describe('a resource that is deleted and applied again at once', () => {
  it('a resource that is removed by force and applied again while no operator leads keeps even the state of its check', async () => {
    await using first = await startOperator()
    await place.apply('nightly')
    const before = await place.ready('nightly')
    const url = await place.pingUrl('nightly')
    await first.stop()
    expect(await ping(url)).toBe(200)

    await place.forceAway('nightly')
    const again = await place.apply('nightly')
    await using _ = await startOperator()
    const after = await place.ready('nightly')
    expect(after.status).toMatchObject({ checkId: before.status?.checkId, state: 'up' })
    await whenOwnedBy('nightly', again)
    expect(await place.pingUrl('nightly')).toBe(url)
  })
})

describe('a resource that was lost without its finalizer', () => {
  it('has its check collected after the time for that, and not before', async () => {
    const orphanMs = 500
    await using first = await startOperator()
    for (const name of ['kept', 'lost']) await place.apply(name)
    for (const name of ['kept', 'lost']) await place.ready(name)
    const url = await place.pingUrl('lost')
    // While one leads, its finalizer would be done before it could be taken off.
    await first.stop()
    await place.forceAway('lost')

    const noticedAt = performance.now()
    await using operator = await startOperator({ orphanMs })
    await whenLeading(operator)
    expect(await ping(url)).toBe(200)
    await eventually('its check is collected', async () => !(await namesWithChecks()).includes('lost'))
    expect(performance.now() - noticedAt).toBeGreaterThan(orphanMs)
    expect(await ping(url)).toBe(404)
    expect(await namesWithChecks()).toEqual(['kept'])
    expect(await readMetric(operator, 'heartbeat_orphans_total')).toBe(1)
  })
})
