/** What becomes of a check that follows a CronJob when its resource, its right or its database goes; and what its status says of the runs. */

import { describe, expect, it } from 'vitest'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { createTestDatabase } from '../support/database.ts'
import { startTestOperator } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { failed, succeeded, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'
import { idOf } from './two-installations.ts'

const t = useScene({ resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)

const check = async (id: string) => (await t.app.call('GET', `/checks/${id}`)).body
const rowOf = async (id: string) =>
  (
    await t.sql(
      `select s.job_area, j.name from checks c join check_states s on s.check_key = c.key
         left join cron_jobs j on j.check_key = c.key where c.id = $1`,
      id,
    )
  ).rows[0]

async function makeFollowed(name: string, spec: object = {}) {
  await cronJobs.create(name, { schedule: '@hourly' })
  const { status } = await t.place.makeReady(name, { ...follow(name), ...spec })
  return status!.checkId!
}

describe('the deletion of the resource', () => {
  it('leaves a check down that was down, until a run succeeds: the Event says why again', async () => {
    const { uid } = await cronJobs.create('broken', { schedule: '@hourly' })
    const { status } = await t.place.makeReady('broken', follow('broken'))
    const second = (after: number) =>
      `${new Date((Math.floor(Date.now() / 1_000) + after) * 1_000).toISOString().slice(0, 19)}Z`
    const becomes = (state: string) =>
      eventually(`it is ${state}`, async () => {
        const object = await t.place.get('broken')
        return object.status?.state === state && object
      })
    await cronJobs.createJob('broken-1', uid, { status: failed(second(0), second(2)) })
    const { lastRun } = (await becomes('down')).status!
    await t.place.delete('broken')
    await t.place.makeReady('broken', follow('broken'))
    const down = await becomes('down')
    expect(down.status!.checkId).toBe(status!.checkId)
    const why = `as before its HeartbeatCheck was deleted: ${lastRun!.message}`
    expect(conditionOf(down, 'Up')!.message).toContain(why)
    await cronJobs.createJob('broken-2', uid, { status: succeeded(second(3), second(4)) })
    await becomes('up')
    expect((await t.place.event('broken', 'Recovered')).note).toContain('a success again')
  })

  it('with Retain leaves a paused check of the API without a source, which a resource of its name has back', async () => {
    const id = await makeFollowed('retained', { deletionPolicy: 'Retain' })
    await t.place.delete('retained')
    expect(await rowOf(id)).toEqual({ job_area: null, name: null })
    expect(await check(id)).toMatchObject({ managed_by: 'api', status: 'paused', schedule: '@hourly' })
    const { body } = await t.app.call('GET', `/audit?target_id=${id}`)
    expect(body.entries[0].action).toBe('check.paused')
    // A person may make it a check of pings.
    expect((await t.app.call('PATCH', `/checks/${id}/resume`)).body).toMatchObject({ status: 'new' })

    const { status } = await t.place.makeReady('retained', { ...follow('retained'), deletionPolicy: 'Retain' })
    expect(status).toMatchObject({ checkId: id, state: 'new' })
    expect(await rowOf(id)).toEqual({ job_area: 'default', name: 'retained' })
  })

  it('follows that of the CronJob that owns it, without a pause before', async () => {
    const { uid } = await cronJobs.create('owning', { schedule: '@hourly' })
    const owner = { apiVersion: 'batch/v1', kind: 'CronJob', name: 'owning', uid, controller: true }
    const { status } = await t.place.makeReady('owning', follow('owning'), { ownerReferences: [owner] })
    await cronJobs.delete('owning')
    await eventually('the check is gone', async () => (await rowOf(status!.checkId!)) === undefined)
    const { body } = await t.app.call('GET', `/audit?target_id=${status!.checkId}`)
    expect(body.entries.map(({ action }: { action: string }) => action)).toEqual(['check.removed', 'check.created'])
  })
})

describe('a check that the database has lost', () => {
  it('is replaced, and the Event speaks of no ping URL', async () => {
    const id = await makeFollowed('lost')
    await t.sql('delete from checks where id = $1', id)
    expect((await t.place.event('lost', 'CheckLost')).note).toBe(
      'the database had lost the check: there is a new one, without the history',
    )
    const newId = await eventually('its status names the new one', async () => {
      const { checkId } = (await t.place.get('lost')).status!
      return checkId !== id && checkId!
    })
    expect(await rowOf(newId)).toEqual({ job_area: 'default', name: 'lost' })
  })
})

describe('a run', () => {
  it('is what the CronJob says of it, at the latest after a poll', async () => {
    await makeFollowed('active')
    await cronJobs.change('active', {
      status: { lastScheduleTime: '2026-01-02T03:00:00Z', active: [{ kind: 'Job', name: 'active-1' }] },
    })
    await eventually('the status shows it', async () => {
      const { status } = await t.place.get('active')
      expect(status?.source).toMatchObject({ lastScheduleTime: '2026-01-02T03:00:00Z', active: ['active-1'] })
      return true
    })
    await cronJobs.change('active', { status: { active: null } })
    await eventually('it has ended', async () => (await t.place.get('active')).status?.source?.active?.length === 0)
  })
})

describe('a right that is missing', () => {
  it('stalls what needs it, with the verb and the resource, and all else goes on', async () => {
    const id = await makeFollowed('blind')
    const isOfJobs = (path: string) => /^\/apis\/batch\/v1\/(namespaces\/[^/]+\/)?jobs$/.test(path)
    const grant = t.cluster.server.forbid(isOfJobs)
    await t.restart()
    const message = await t.place.stalled('blind', 'SourceForbidden')
    expect(message).toContain('the operator may not list jobs.batch')
    // Which roles there are depends on how the operator was installed.
    expect(message).toContain(
      "repeat helm upgrade of the operator's release, or without Helm apply its manifests again",
    )
    expect(message).not.toMatch(/heartbeat-operator-|ClusterRole/)
    // A watch that is open goes on, and lists may be allowed.
    expect(message).toMatch(/ Until then runs may be incomplete, and none is called missed$/)
    const { status } = await t.place.get('blind')
    expect(status).toMatchObject({ state: 'new', checkId: id, source: { name: 'blind' } })
    await t.place.makeReady('seeing')
    // A new one has no check yet: its schedule is not known.
    await t.place.apply('born-blind', follow('blind'))
    await t.place.stalled('born-blind', 'SourceForbidden')
    grant()
    await t.place.ready('blind')
    await t.place.ready('born-blind')
  })

  it('that only reasons need is in the message of Ready, and stalls nothing', async () => {
    await makeFollowed('unexplained')
    const grant = t.cluster.server.forbid((path) => path === '/api/v1/events')
    await t.restart()
    const object = await eventually('the status says it', async () => {
      const object = await t.place.get('unexplained')
      return conditionOf(object, 'Ready')?.message?.includes('the operator may not list events') && object
    })
    expect(conditionOf(object, 'Ready')).toMatchObject({ status: 'True', reason: 'Synced' })
    expect(conditionOf(object, 'Stalled')).toBeUndefined()
    grant()
    await t.restart()
    await eventually('the status is as before', async () => {
      const { message } = (await t.place.condition('unexplained', 'Ready'))!
      return message === 'the service holds this specification'
    })
  })

  it('is not needed while WATCH_CRONJOBS is none: then what needs it says so', async () => {
    const id = await makeFollowed('unwatched')
    await t.restart({ cronJobs: { ...LABELLED, watch: 'none' } })
    const from = t.cluster.server.requests.length
    const message = await t.place.stalled('unwatched', 'SourceForbidden')
    expect(message).toContain('WATCH_CRONJOBS is none: it needs list and watch of cronjobs.batch, jobs.batch and pods')
    expect((await t.place.get('unwatched')).status).toMatchObject({ state: 'new', checkId: id })
    await t.place.makeReady('still-works')
    const read = t.cluster.server.requests.slice(from).filter(({ path }) => /\/(jobs|pods)$/.test(path))
    expect(read).toEqual([])
    await t.restart()
    await t.place.ready('unwatched')
  })
})

describe('a takeover', () => {
  it('gives the resource a check of the new installation, though no URL is published', async () => {
    const id = await makeFollowed('taken')
    await using stack = new AsyncDisposableStack()
    const two = await createTestDatabase()
    stack.defer(two.close)
    await t.operator().stop()
    await using second = await startTestOperator({
      connection: t.cluster.connection,
      testDatabase: two,
      leaseNamespace: 'two',
      changes: { takeOver: await idOf(t.testDatabase), pollMs: 100, cronJobs: LABELLED },
    })
    const { note } = await t.place.event('taken', 'TakenOver')
    expect(note).toContain('the check is a new one, and its history stays with the previous installation')
    const { status } = await t.place.ready('taken')
    expect(status).toMatchObject({ installation: await idOf(second.testDatabase), source: { name: 'taken' } })
    expect(status!.checkId).not.toBe(id)
    expect(await t.place.condition('taken', 'Published')).toBeUndefined()
  })
})
