/** HeartbeatSilences: which checks they keep quiet, until when, and what people see. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { toTime } from '../../src/kubernetes/objects.ts'
import { newId } from '../../src/runtime/ids.ts'
import { MAX_SILENCES } from '../../src/silences/create-silence.ts'
import { insertSilence } from '../../src/store/silences/silences.ts'
import { startReceiver } from '../support/receiver.ts'
import { eventually } from '../support/until.ts'
import { use, useEach } from '../support/use.ts'
import { openWorkplace } from '../support/workplace.ts'
import { useScene } from './scene.ts'
import { atIn, openSilencePlace, SUNDAYS } from './silence-place.ts'

const t = useScene({ orphanMs: 3_000 }, { ALLOWED_TARGETS: '127.0.0.1/32' })
const receiver = use(startReceiver)
const place = useEach(() => openSilencePlace(t, receiver.url))

describe('a HeartbeatSilence', () => {
  it('keeps the checks that it selects quiet, and no other one', async () => {
    await place.checks.makeReady('database', undefined, { labels: { tier: 'db', team: 'shop' } })
    await place.checks.makeReady('web', undefined, { labels: { tier: 'web', team: 'shop' } })
    const checkSelector = {
      matchLabels: { team: 'shop' },
      matchExpressions: [{ key: 'tier', operator: 'NotIn', values: ['web'] }],
    }
    await place.makeReady('sundays', { endsAt: atIn(600), comment: 'Updates', checkSelector })
    expect(await place.condition('sundays', 'Active')).toMatchObject({ status: 'True', reason: 'Active' })
    await Promise.all([place.fail('database'), place.fail('web')])
    const { silenceId, activeUntil } = await place.statusOf('sundays')
    expect(await place.sent('database')).toEqual([`check.down: suppressed, silenced by ${silenceId}`])
    await eventually('the other one is delivered', async () => (await place.sent('web'))[0] === 'check.down: delivered')
    const body = await place.silenceOf('sundays')
    expect(body).toMatchObject({
      managed_by: 'kubernetes',
      kubernetes: { cluster: 'default', namespace: place.name, name: 'sundays', check_selector: 'team=shop,tier!=web' },
      comment: 'Updates',
      by: { kind: 'kubernetes' },
      active: true,
    })
    expect(toTime(Date.parse(body.active_until))).toBe(activeUntil)
  })

  it('covers all HeartbeatChecks of its namespace without a selector, in each project, and none of another one', async () => {
    expect(await t.app.call('POST', '/projects', { name: 'Quiet', slug: 'quiet' })).toMatchObject({ status: 201 })
    const projects = await openWorkplace(t.cluster, { 'heartbeat-operator.io/projects': 'default,quiet' })
    const own = await openSilencePlace(t, receiver.url, projects)
    await own.checks.makeReady('a', { periodSeconds: 3_600, project: 'quiet' })
    await place.checks.makeReady('a')
    await own.makeReady('all', { endsAt: atIn(600), comment: 'All' })
    await Promise.all([own.fail('a'), place.fail('a')])
    expect((await own.checkOf('a')).project_id).not.toBe((await own.silenceOf('all')).project_id)
    expect((await own.sent('a'))[0]).toMatch(/^check.down: suppressed/)
    await eventually('the other one is delivered', async () => (await place.sent('a'))[0] === 'check.down: delivered')
  })

  it('is no silence when it was over before it was applied', async () => {
    await place.makeReady('past', { startsAt: atIn(-60), endsAt: atIn(-30), comment: 'Past' })
    await place.makeReady('older', { endsAt: atIn(-30), comment: 'Older than its resource' })
    for (const name of ['past', 'older']) {
      expect(await place.condition(name, 'Active')).toMatchObject({ status: 'False', reason: 'Ended' })
      expect(await place.statusOf(name)).not.toHaveProperty('silenceId')
    }
  })

  it('notifies at once of what is down when it is deleted, or covers it no longer', async () => {
    const names = ['by-deletion', 'by-selector', 'by-label']
    await Promise.all(names.map((name) => place.checks.makeReady(name, undefined, { labels: { team: 'shop' } })))
    const spec = { endsAt: atIn(600), comment: 'Work', checkSelector: { matchLabels: { team: 'shop' } } }
    await place.makeReady('work', spec)
    const { silenceId } = await place.statusOf('work')
    await Promise.all(names.map((name) => place.fail(name)))
    const isNotified = (name: string) => async () => (await place.sent(name)).includes('check.down: delivered')
    await place.checks.change('by-label', { metadata: { labels: { team: 'other' } } })
    await eventually('the label counts', isNotified('by-label'))
    const others = [{ key: 'kept', operator: 'Exists' }]
    await place.checks.change('by-deletion', { metadata: { labels: { kept: '' } } })
    await place.checks.ready('by-deletion')
    await eventually('the check has it', async () => 'kept' in (await place.checkOf('by-deletion')).labels)
    await place.apply('work', { ...spec, checkSelector: { ...spec.checkSelector, matchExpressions: others } })
    await eventually('the selector counts', isNotified('by-selector'))
    expect((await place.statusOf('work')).silenceId).toBe(silenceId)
    expect(await place.sent('by-deletion')).toHaveLength(1)
    await place.delete('work')
    await eventually('the deletion counts', isNotified('by-deletion'))
    expect((await t.app.call('GET', `/silences/${silenceId}`)).status).toBe(404)
  })

  it('is read-only in the API', async () => {
    await place.makeReady('sundays', SUNDAYS)
    const { silenceId } = await place.statusOf('sundays')
    expect(await t.app.call('DELETE', `/silences/${silenceId}`)).toMatchObject({
      status: 409,
      body: {
        code: 'managed_by_kubernetes',
        error: `silence is managed by HeartbeatSilence ${place.name}/sundays in cluster default; change the resource instead`,
      },
    })
  })

  it('writes nothing while nothing changes', async () => {
    const { metadata } = await place.makeReady('sundays', SUNDAYS)
    const rows = async () => (await t.sql('select *, xmin from silences order by id')).rows
    const before = await rows()
    await t.restart()
    const lists = () => t.cluster.server.requests.filter(({ path }) => path.endsWith('/heartbeatsilences')).length
    await eventually('it is listed again', () => lists() > 0)
    await place.change('sundays', {
      metadata: { annotations: { 'heartbeat-operator.io/reconcile-requested-at': '1' } },
    })
    await eventually(
      'it is reconciled',
      async () => (await place.statusOf('sundays')).lastHandledReconcileRequest === '1',
    )
    expect(await rows()).toEqual(before)
    expect((await place.get('sundays')).metadata.generation).toBe(metadata.generation)
  })

  it('takes its silence along when its finalizer was removed by force', async () => {
    await place.makeReady('sundays', SUNDAYS)
    const { silenceId } = await place.statusOf('sundays')
    await t.operator().stop()
    await place.forceAway('sundays')
    await t.restart()
    await eventually('it is gone', async () => (await t.app.call('GET', `/silences/${silenceId}`)).status === 404)
  })

  it('goes when another installation shows a silence of its own, and not before', async () => {
    await place.makeReady('sundays', SUNDAYS)
    const { silenceId } = await place.statusOf('sundays')
    const write = (status: object) => t.cluster.api('PATCH', `${place.pathOf('sundays')}/status`, { status })
    await write({ installation: '01999999-9999-7999-8999-000000000000', silenceId: null })
    await place.event('sundays', 'ManagedElsewhere')
    expect((await t.app.call('GET', `/silences/${silenceId}`)).status).toBe(200)
    await write({ silenceId: '01999999-9999-7999-8999-999999999999' })
    await eventually('it is gone', async () => (await t.app.call('GET', `/silences/${silenceId}`)).status === 404)
  })
})

describe('without a resync, a HeartbeatSilence', () => {
  // A stalled one is tried again after a sixtieth of it.
  beforeAll(() => t.restart({ resyncMs: 36_000_000 }))
  afterAll(() => t.restart())

  it('ends by the clock: what is down is notified, and the resource stays', async () => {
    await place.checks.makeReady('backup')
    await place.makeReady('short', { endsAt: atIn(4), comment: 'Short' })
    await place.fail('backup')
    expect((await place.sent('backup'))[0]).toMatch(/^check.down: suppressed/)
    await eventually('it is notified', async () => (await place.sent('backup')).includes('check.down: delivered'))
    await eventually('the status says so', async () => (await place.condition('short', 'Active'))?.status === 'False')
    expect(await place.condition('short', 'Active')).toMatchObject({ reason: 'Ended' })
    expect(await place.condition('short', 'Ready')).toMatchObject({ status: 'True' })
    expect(await place.statusOf('short')).not.toHaveProperty('activeUntil')
  })

  it('ends by the clock also while a change of it is refused', async () => {
    await place.makeReady('short', { endsAt: atIn(4), comment: 'Short' })
    await place.apply('short', { ...SUNDAYS, endsAt: null, timeZone: 'Europe/Atlantis' })
    await place.stalled('short', 'InvalidSpec')
    expect(await place.condition('short', 'Active')).toMatchObject({ status: 'True' })
    await eventually('the status says so', async () => (await place.condition('short', 'Active'))?.status === 'False')
    expect(await place.condition('short', 'Stalled')).toMatchObject({ status: 'True' })
  })

  it('is planned until it begins', async () => {
    await place.makeReady('sundays', SUNDAYS)
    const { nextStartTime } = await place.statusOf('sundays')
    expect(new Date(nextStartTime!).getUTCDay()).toBe(0)
    expect(await place.condition('sundays', 'Active')).toMatchObject({
      status: 'False',
      reason: 'Planned',
      message: `it begins at ${nextStartTime}`,
    })
    await place.makeReady('soon', { startsAt: atIn(3), endsAt: atIn(600), comment: 'Soon' })
    expect(await place.condition('soon', 'Active')).toMatchObject({ reason: 'Planned' })
    await eventually('it holds', async () => (await place.condition('soon', 'Active'))?.status === 'True')
  })

  it('is made again when the database has lost its silence', async () => {
    await place.makeReady('sundays', SUNDAYS)
    const { silenceId } = await place.statusOf('sundays')
    await t.sql('delete from silences where id = $1', silenceId)
    await eventually('it has another', async () => (await place.statusOf('sundays')).silenceId !== silenceId)
  })

  it('has the id of its silence in the status, also where that was another one before', async () => {
    await place.makeReady('sundays', SUNDAYS)
    const { silenceId } = await place.statusOf('sundays')
    const status = { silenceId: '01999999-9999-7999-8999-999999999999' }
    await t.cluster.api('PATCH', `${place.pathOf('sundays')}/status`, { status })
    await eventually('it is there again', async () => (await place.statusOf('sundays')).silenceId === silenceId)
  })
})

describe('what a person has to correct', () => {
  it.each([
    ['a date that never comes', { ...SUNDAYS, schedule: '0 2 31 2 *' }, 'spec.schedule must come at some time'],
    ['a zone that is none', { ...SUNDAYS, timeZone: 'Europe/Atlantis' }, 'spec.timeZone must be an IANA time zone'],
  ])('is said of %s', async (_, spec, says) => {
    await place.apply('odd', spec)
    expect(await place.stalled('odd', 'InvalidSpec')).toContain(says)
    expect(await place.condition('odd', 'Active')).toBeUndefined()
    await place.apply('odd', SUNDAYS)
    await place.ready('odd')
  })

  it('is said of a project with the most silences', async () => {
    await place.makeReady('last', SUNDAYS)
    const { silenceId } = await place.statusOf('last')
    const { project_id: projectId } = (await t.app.call('GET', `/silences/${silenceId}`)).body
    const { rows } = await t.sql('select organization_id as id from projects where id = $1', projectId)
    const now = Date.now()
    const base = {
      organizationId: (rows[0] as { id: string }).id,
      projectId,
      checkId: null,
      tag: null,
      schedule: null,
      timeZone: null,
    }
    const times = { dialect: null, durationSeconds: null, startsAt: now, endsAt: now + 3_600_000, createdAt: now }
    const by = {
      createdBy: { kind: 'user', id: null, name: 'Ada' },
      comment: '',
      kubernetes: null,
      selector: null,
    } as const
    for (let count = 1; count < MAX_SILENCES; count += 1)
      await insertSilence(t.testDatabase.database, { id: newId(now), ...base, ...times, ...by })
    await place.apply('more', SUNDAYS)
    expect(await place.stalled('more', 'SilenceRefused')).toContain(`${MAX_SILENCES} silences that have not ended`)
    await place.delete('last')
    await place.ready('more')
  })
})
