/** Leadership between processes: what a kill and a stop of the leader do. */

import { isDeepStrictEqual } from 'node:util'
import { expect, it } from 'vitest'
import { systemClock } from '../../src/runtime/clock.ts'
import { findHealth } from '../../src/service/find-health.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import type { TestDatabase } from '../support/database.ts'
import { LOW_COST } from '../support/passwords.ts'
import { startRoleStage } from '../support/role-stage.ts'
import { type ServiceProcess, spawnService } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'

async function startControllerOf(environment: Record<string, string>): Promise<ServiceProcess & { ops: string }> {
  const service = spawnService(environment)
  const [, ops] = await service.waitFor(/^ready ops=(\S+)$/m)
  return Object.assign(service, { ops: ops! })
}

const statusOf = async (url: string) => (await fetch(url)).status
const isLeading = async ({ ops }: { ops: string }) =>
  (await (await fetch(`${ops}/metrics`)).text()).includes(
    'leader_election_master_status{name="heartbeat-operator"} 1\n',
  )

async function anyTenant({ database }: TestDatabase) {
  const { rows } = await database.query<{ id: string }>('select id from organizations')
  return { organizationId: rows[0]!.id, projectId: null }
}

it('of two controllers the standby leads within twenty seconds of a kill -9, and the next within five of a stop', async () => {
  await using stage = await startRoleStage()
  const { place, testDatabase } = stage
  await bootstrap({ ...testDatabase, clock: systemClock, passwordCost: LOW_COST }, { email: 'admin@example.com' })
  const kubeconfig = await stage.writeKubeconfig(stage.cluster.server.url)
  const startController = () => startControllerOf(stage.environmentOf({ ROLE: 'controller', KUBECONFIG: kubeconfig }))
  await using first = await startController()
  await eventually('the first one leads', () => isLeading(first), 20_000)
  await using second = await startController()
  await eventually('the standby is ready without leading', async () => (await statusOf(`${second.ops}/readyz`)) === 200)
  expect(await isLeading(second)).toBe(false)
  expect(first.stdout).not.toMatch(/ping=|api=/)
  await place.makeReady('before')

  const killedAt = performance.now()
  await first.kill()
  await eventually('the second one leads', () => isLeading(second), 20_000)
  expect(performance.now() - killedAt).toBeLessThan(20_000)
  await place.makeReady('after-kill')
  // The page of the service's health says the same after the next report.
  await eventually('the second one is reported to lead alone, the first one to be missing', async () => {
    const { clusters, replicas } = await findHealth(
      { ...testDatabase, clock: systemClock },
      await anyTenant(testDatabase),
    )
    const lives = replicas.filter(({ role }) => role === 'controller').map(({ isLive }) => isLive)
    return (
      clusters?.find(({ name }) => name === 'default')?.leaders.length === 1 && isDeepStrictEqual(lives, [true, false])
    )
  })

  await using third = await startController()
  await eventually('the third one is ready', async () => (await statusOf(`${third.ops}/readyz`)) === 200)
  const stoppedAt = performance.now()
  const stopped = second.stop()
  await eventually('the third one leads', () => isLeading(third), 10_000)
  expect(performance.now() - stoppedAt).toBeLessThan(5_000)
  expect((await stopped).status).toBe(0)
  await place.makeReady('after-stop')
  expect((await third.stop()).status).toBe(0)
  // Those that stop cleanly are not missing.
  const { rows } = await testDatabase.database.query<{ count: number }>(
    `select count(*) as count from replicas where role = 'controller'`,
  )
  expect(rows[0]!.count).toBe(1)
})
