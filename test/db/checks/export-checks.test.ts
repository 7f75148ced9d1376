import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { createExporter, type ExportedCheck, type Exporter } from '../../../src/checks/export-checks.ts'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import type { PingType } from '../../../src/domain/check.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { claimExport } from '../../../src/store/leases/exporter.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { addSilence } from '../../support/silence.ts'
import {
  addCheck,
  addProject,
  addTenant,
  cronSpec,
  manageByKubernetes,
  NOW,
  openTransaction,
  periodSpec,
  ping,
  type TestTenant,
  useFixture,
} from './fixture.ts'

const fixture = useFixture()
let exporter: Exporter
const { tenant } = fixture
beforeEach(() => {
  exporter = createExporter(fixture.context)
})

/** Null: it does not export. */
async function readBy(one: Exporter): Promise<ExportedCheck[] | null> {
  const checks: ExportedCheck[] = []
  const isActive = await one.read((check) => checks.push(check))
  if (!isActive) expect(checks).toEqual([])
  return isActive ? checks : null
}

describe('the lease', () => {
  const letExpire = () => fixture.database.query(`update exporter set expires_at = now() - interval '1 millisecond'`)
  const rowOf = async () =>
    (
      await fixture.database.query(
        `select xmin::text, xmax::text, extract(epoch from expires_at - now())::float8 as left, expires_at as "expiresAt" from exporter`,
      )
    ).rows[0] as { xmin: string; xmax: string; left: number; expiresAt: number } | undefined
  const databaseNow = async () => (await fixture.database.query<{ now: number }>('select now() as now')).rows[0]!.now
  let other: Exporter
  beforeEach(() => {
    other = createExporter(fixture.context)
  })

  it('is had by the first of two that find it free', async () => {
    const first = await openTransaction(fixture, (tx) => claimExport(tx, randomUUID(), 5_000))
    expect(await first.commitBefore(() => claimExport(fixture.database, randomUUID(), 5_000))).toBe(false)
  })

  it('is kept by its holder, and no other replica writes it', async () => {
    await exporter.hold()
    await fixture.database.query(`update exporter set expires_at = now() + interval '4 seconds'`)
    const before = await rowOf()
    await other.hold()
    expect(await rowOf()).toMatchObject({ xmin: before!.xmin, xmax: '0' })
    expect(await readBy(other)).toBeNull()
    const renewedAfter = await databaseNow()
    await exporter.hold()
    const { left, expiresAt } = (await rowOf())!
    expect(expiresAt).toBeGreaterThanOrEqual(renewedAfter + 5_000)
    expect(left).toBeLessThanOrEqual(5)
    expect(await readBy(exporter)).toEqual([])
  })

  it("that ran out is worth nothing to its holder, and is the next one's who asks", async () => {
    await exporter.hold()
    await letExpire()
    expect(await readBy(exporter)).toBeNull()
    await other.hold()
    // As one that was frozen and comes back.
    await exporter.hold()
    expect(await readBy(exporter)).toBeNull()
    expect(await readBy(other)).toEqual([])
  })

  it('is free at once when its holder gives it up, and only the holder can', async () => {
    await exporter.hold()
    await other.release()
    expect(await readBy(exporter)).toEqual([])
    await exporter.release()
    expect(await readBy(exporter)).toBeNull()
    await other.hold()
    expect(await readBy(other)).toEqual([])
  })
})

describe('what is exported', () => {
  const read = async (): Promise<ExportedCheck> => {
    await exporter.hold()
    const checks = (await readBy(exporter))!
    expect(checks).toHaveLength(1)
    return checks[0]!
  }
  const pinged = (check: CheckRecord, type: PingType, at: number, runId?: string) =>
    fixture.database.transaction((tx) => ping(tx, check, type, at, runId === undefined ? {} : { runId }))
  const turnDown = (check: CheckRecord, reason: string) =>
    fixture.database.query('update check_states set status = 2, reason = $2 where check_key = $1', [check.key, reason])

  it('has few values for a new check', async () => {
    const { slug } = await addCheck(fixture, tenant)
    expect(await read()).toEqual({
      namespace: '',
      project: 'test',
      name: slug,
      cluster: null,
      status: 'new',
      downReason: null,
      lastPingAt: null,
      lastSuccessAt: null,
      deadlineAt: null,
      lastDurationMs: null,
      periodSeconds: 3_600,
      graceSeconds: 300,
      isRunning: false,
      isFlapping: false,
      isWarning: false,
      isSilenced: false,
      labels: [],
    })
  })

  it('has the labels that are asked for, in this order, and null for one that it lacks', async () => {
    const labels = { team: 'shop', 'app.kubernetes.io/name': 'backup', other: 'x', empty: '' }
    await addCheck(fixture, tenant, { labels })
    exporter = createExporter(fixture.context, ['team', 'none', 'app.kubernetes.io/name', 'empty'])
    expect(await read()).toMatchObject({ isFlapping: false, labels: ['shop', null, 'backup', ''] })
  })

  it('is called as its resource is, in a cluster only where that has a name', async () => {
    const check = await addCheck(fixture, tenant)
    await manageByKubernetes(fixture, check, null)
    expect(await read()).toMatchObject({ namespace: 'payments', name: 'nightly', cluster: null })
    await fixture.database.query(`update checks set kubernetes_cluster = 'eu-1'`)
    expect(await read()).toMatchObject({ namespace: 'payments', name: 'nightly', cluster: 'eu-1' })
  })

  it('is flapping as long as its changes are not notified', async () => {
    await addCheck(fixture, tenant)
    await fixture.database.query('update check_states set notified = 0, quiet_at = now()')
    expect(await read()).toMatchObject({ isFlapping: true })
  })

  it('is silenced while a silence holds that covers it', async () => {
    await addCheck(fixture, tenant, { name: 'db', tags: ['db'] })
    await addCheck(fixture, tenant, { name: 'web' })
    const silencedAt = async (at: number) => {
      fixture.clock.time = at
      await exporter.hold()
      return (await readBy(exporter))!.filter(({ isSilenced }) => isSilenced).map(({ name }) => name)
    }
    expect(await silencedAt(NOW)).toEqual([])
    await addSilence(fixture, tenant, NOW)
    const times = [NOW - HOUR - 1, NOW - HOUR, NOW + HOUR - 1, NOW + HOUR]
    const silenced = []
    for (const at of times) silenced.push(await silencedAt(at))
    expect(silenced).toEqual([[], ['db', 'web'], ['db', 'web'], []])
    await fixture.database.query(
      `update silences set tag = 'db', starts_at = null, ends_at = null, schedule = '30 12 * * *', time_zone = 'UTC',
        dialect = 'cron', duration_seconds = 60`,
    )
    expect(await silencedAt(NOW)).toEqual([])
    expect(await silencedAt(NOW + 30 * MINUTE)).toEqual(['db'])
    expect(await silencedAt(NOW + 31 * MINUTE)).toEqual([])
  })

  it('has no period for a cron schedule', async () => {
    await addCheck(fixture, tenant, { spec: cronSpec('0 2 * * *') })
    expect(await read()).toMatchObject({ periodSeconds: null, graceSeconds: 300 })
  })

  it('follows pings: the last one, the last that succeeded, and how long the last run took', async () => {
    const check = await addCheck(fixture, tenant)
    const second = 1_000
    await pinged(check, 'start', NOW)
    expect(await read()).toMatchObject({ status: 'new', isRunning: true, lastPingAt: null, lastDurationMs: null })
    await pinged(check, 'success', NOW + 5 * second)
    const succeeded = { lastPingAt: NOW + 5 * second, lastSuccessAt: NOW + 5 * second, lastDurationMs: 5 * second }
    const deadlineAt = NOW + 5 * second + HOUR + 5 * MINUTE
    expect(await read()).toMatchObject({ ...succeeded, status: 'up', isRunning: false, deadlineAt })
    await pinged(check, 'log', NOW + 6 * second)
    await pinged(check, 'start', NOW + 7 * second)
    expect(await read()).toMatchObject({ ...succeeded, isRunning: true })
    await pinged(check, 'fail', NOW + 8 * second)
    const failed = { lastPingAt: NOW + 8 * second, lastDurationMs: second, deadlineAt: null, isRunning: false }
    expect(await read()).toMatchObject({
      ...failed,
      lastSuccessAt: NOW + 5 * second,
      status: 'down',
      downReason: 'failed',
    })
    // Nobody knows when this one began.
    await pinged(check, 'success', NOW + 9 * second)
    const recovered = { lastPingAt: NOW + 9 * second, lastSuccessAt: NOW + 9 * second, lastDurationMs: null }
    expect(await read()).toMatchObject({ ...recovered, status: 'up', downReason: null })
    // A warning is a success in time.
    await pinged(check, 'warn', NOW + 10 * second)
    const warned = { lastPingAt: NOW + 10 * second, lastSuccessAt: NOW + 10 * second, isWarning: true }
    expect(await read()).toMatchObject({ ...warned, status: 'up' })
    await pinged(check, 'log', NOW + 11 * second)
    expect(await read()).toMatchObject(warned)
    await pinged(check, 'success', NOW + 12 * second)
    expect(await read()).toMatchObject({ isWarning: false })
  })

  it('knows of a check that is up that its last ping succeeded', async () => {
    const check = await addCheck(fixture, tenant)
    const column = async () =>
      (await fixture.database.query<{ at: number | null }>('select last_success_at as at from check_states')).rows[0]!
        .at
    await pinged(check, 'success', NOW)
    expect(await read()).toMatchObject({ status: 'up', lastPingAt: NOW, lastSuccessAt: NOW })
    await pinged(check, 'fail', NOW + MINUTE)
    expect(await column()).toBe(NOW)
    expect(await read()).toMatchObject({ status: 'down', lastPingAt: NOW + MINUTE, lastSuccessAt: NOW })
  })

  it('is the last success as it is on record for a check that is not up', async () => {
    const check = await addCheck(fixture, tenant)
    await pinged(check, 'fail', NOW + MINUTE)
    expect(await read()).toMatchObject({ status: 'down', lastPingAt: NOW + MINUTE, lastSuccessAt: null })
    await fixture.database.query(`update check_states set last_success_at = to_timestamp($1 / 1000.0)`, [NOW])
    expect(await read()).toMatchObject({ status: 'down', lastPingAt: NOW + MINUTE, lastSuccessAt: NOW })
    await pinged(check, 'fail', NOW + 2 * MINUTE)
    expect(await read()).toMatchObject({ lastPingAt: NOW + 2 * MINUTE, lastSuccessAt: NOW })
  })

  it('follows pings of a check that is paused, which awaits nothing', async () => {
    const check = await addCheck(fixture, tenant)
    await pinged(check, 'success', NOW)
    await pauseCheck(fixture.context, tenant, check.id)
    await pinged(check, 'fail', NOW + MINUTE)
    const paused = { lastPingAt: NOW + MINUTE, lastSuccessAt: NOW, deadlineAt: null }
    expect(await read()).toMatchObject({ ...paused, status: 'paused', downReason: null })
    fixture.clock.time = NOW + HOUR
    await resumeCheck(fixture.context, tenant, check.id)
    const resumed = { lastPingAt: NOW + MINUTE, lastSuccessAt: NOW, deadlineAt: NOW + 2 * HOUR + 5 * MINUTE }
    expect(await read()).toMatchObject({ ...resumed, status: 'new' })
  })

  it('is late from the moment at which the ping was expected', async () => {
    const check = await addCheck(fixture, tenant)
    await pinged(check, 'success', NOW)
    fixture.clock.time = NOW + HOUR - 1
    expect(await read()).toMatchObject({ status: 'up' })
    fixture.clock.time = NOW + HOUR
    expect(await read()).toMatchObject({ status: 'late', deadlineAt: NOW + HOUR + 5 * MINUTE })
  })

  it('has the deadline of the run that ends first, and is running until that has passed', async () => {
    const check = await addCheck(fixture, tenant, { spec: periodSpec({ maxRuntimeSeconds: 60 }) })
    await pinged(check, 'start', NOW, randomUUID())
    await pinged(check, 'start', NOW + 10_000, randomUUID())
    expect(await read()).toMatchObject({ deadlineAt: NOW + MINUTE, isRunning: true })
    fixture.clock.time = NOW + 69_999
    expect(await read()).toMatchObject({ isRunning: true })
    fixture.clock.time = NOW + 70_000
    expect(await read()).toMatchObject({ isRunning: false })
  })

  it.each(['missed', 'failed', 'overran'])('says of a check that is down why: %s', async (reason) => {
    const check = await addCheck(fixture, tenant)
    await turnDown(check, reason)
    expect(await read()).toMatchObject({ status: 'down', downReason: reason })
  })

  it('says why a check is down also when its flip has left the history', async () => {
    const check = await addCheck(fixture, tenant)
    await fixture.database.transaction((tx) => ping(tx, check, 'fail', NOW))
    await fixture.database.query('delete from flips')
    expect(await read()).toMatchObject({ status: 'down', downReason: 'failed' })
  })

  it('are the checks of every organization, by their names, and of the same names the oldest first', async () => {
    const stranger = await addTenant(fixture, 'theirs')
    const twin = await addTenant(fixture, 'twin')
    await fixture.database.query(`update projects set slug = 'test' where id = $1`, [twin.project])
    const add = (owner: TestTenant, slug: string, periodSeconds: number) =>
      addCheck(fixture, owner, { slug, spec: periodSpec({ periodSeconds }) })
    await add(twin, 'b', 61)
    await add(tenant, 'b', 62)
    await add(stranger, 'a', 63)
    await add(tenant, 'c', 64)
    await add(tenant, 'B', 65)
    await add(twin, 'a', 66)
    await addProject(fixture, tenant)
    await exporter.hold()
    const checks = (await readBy(exporter))!
    expect(checks.map(({ project, name, periodSeconds }) => [project, name, periodSeconds])).toEqual([
      ['test', 'B', 65],
      ['test', 'a', 66],
      ['test', 'b', 61],
      ['test', 'b', 62],
      ['test', 'c', 64],
      ['theirs', 'a', 63],
    ])
  })
})
