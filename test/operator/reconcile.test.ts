/** A HeartbeatCheck becomes a check, follows its changes, and is set right when somebody changes the check elsewhere. */

import { describe, expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { conditionOf } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const t = useScene()

/** The check as the management API shows it. */
async function checkOf(name: string) {
  const { status } = await t.place.get(name)
  const { body } = await t.app.call('GET', `/checks/${status!.checkId}`)
  return body
}

describe('a new HeartbeatCheck', () => {
  it('becomes a check of its namespace, armed at once', async () => {
    await t.place.makeReady('nightly', { schedule: '0 2 * * *' })
    expect(await checkOf('nightly')).toMatchObject({
      name: 'nightly',
      slug: 'nightly',
      description: null,
      schedule: '0 2 * * *',
      time_zone: 'UTC',
      period_seconds: null,
      grace_seconds: 3_600,
      max_runtime_seconds: null,
      status: 'new',
      due_at: expect.stringContaining('T03:00:00.000Z'),
      managed_by: 'kubernetes',
      kubernetes: { cluster: 'default', namespace: t.place.name, name: 'nightly' },
    })
    expect(await t.place.pingUrl('nightly')).toContain(`${t.app.pingUrl}/ping/`)
    expect((await fetch(await t.place.pingUrl('nightly'))).status).toBe(200)
  })

  it('may have a name of 63 characters, of which the Secret has its own', async () => {
    const name = `${'long-'.repeat(12)}job`
    expect(name).toHaveLength(63)
    await t.place.makeReady(name)
    expect((await t.place.find('secrets', `${name}-heartbeat`))?.metadata.labels).toMatchObject({
      'heartbeat-operator.io/check': name,
    })
  })

  it('whose schedule names no date is Stalled, says which field and why, and recovers when it is corrected', async () => {
    await t.place.apply('broken', { schedule: '0 2 30 2 *' })
    expect(await t.place.stalled('broken', 'InvalidSpec')).toContain('spec.schedule')
    expect((await t.place.get('broken')).status).not.toHaveProperty('checkId')
    expect((await t.place.get('broken')).metadata.finalizers).toBeUndefined()
    await t.place.change('broken', { spec: { schedule: '0 2 28 2 *' } })
    const { status } = await t.place.ready('broken')
    expect(status?.conditions?.map(({ type }) => type)).toEqual(['Ready', 'Published', 'Up'])
  })
})

describe('a changed HeartbeatCheck', () => {
  it.each([
    ['displayName', { displayName: ' Nightly backup ' }, { name: 'Nightly backup' }],
    ['description', { description: 'Ask the shop team' }, { description: 'Ask the shop team' }],
    ['periodSeconds', { periodSeconds: 600 }, { period_seconds: 600 }],
    ['graceSeconds', { graceSeconds: 60 }, { grace_seconds: 60 }],
    ['maxRuntimeSeconds', { maxRuntimeSeconds: 90 }, { max_runtime_seconds: 90 }],
    [
      'schedule and timeZone',
      { periodSeconds: null, schedule: '15 3 * * 1', timeZone: 'Europe/Berlin' },
      { schedule: '15 3 * * 1', time_zone: 'Europe/Berlin', period_seconds: null },
    ],
  ])('has its %s changed in the service, and given back', async (what, change, shown) => {
    const name = `change-${what.split(' ')[0]!.toLowerCase()}`
    await t.place.makeReady(name, { periodSeconds: 3_600 })
    const before = await checkOf(name)
    await t.place.change(name, { spec: change })
    await t.place.ready(name)
    expect(await checkOf(name)).toMatchObject({ ...shown, id: before.id, public_id: before.public_id })
    const taken = Object.fromEntries(Object.keys(change).map((field) => [field, null]))
    await t.place.change(name, { spec: { ...taken, periodSeconds: 3_600 } })
    await t.place.ready(name)
    const { due_at: _, expected_at: _expected, ...kept } = before
    expect(await checkOf(name)).toMatchObject(kept)
  })
})

describe('suspend', () => {
  const pause = async (name: string, verb: 'pause' | 'resume') => {
    const { status } = await t.place.get(name)
    return t.app.call('PATCH', `/checks/${status!.checkId}/${verb}`)
  }

  it('suspend pauses the check while it is true, and resumes it when it is false; the API is rejected meanwhile', async () => {
    await t.place.makeReady('suspended', { periodSeconds: 3_600, suspend: true })
    expect(await checkOf('suspended')).toMatchObject({ status: 'paused', due_at: null })
    expect(conditionOf(await t.place.get('suspended'), 'Up')).toMatchObject({ status: 'Unknown', reason: 'Suspended' })
    const refused = await pause('suspended', 'resume')
    expect(refused.status).toBe(409)
    expect(refused.body.error).toContain(`${t.place.name}/suspended`)
    await t.place.change('suspended', { spec: { suspend: false } })
    await t.place.ready('suspended')
    expect(await checkOf('suspended')).toMatchObject({ status: 'new', due_at: expect.any(String) })
    expect((await pause('suspended', 'pause')).status).toBe(409)
  })

  it('leaves pausing and resuming to the API while it is unset', async () => {
    await t.place.makeReady('unset', { periodSeconds: 3_600, suspend: true })
    await t.place.change('unset', { spec: { suspend: null } })
    await t.place.ready('unset')
    expect(await checkOf('unset')).toMatchObject({ status: 'paused' })
    expect((await pause('unset', 'resume')).body).toMatchObject({ status: 'new' })
    await t.place.inState('unset', 'new')
    expect((await pause('unset', 'pause')).body).toMatchObject({ status: 'paused' })
    await t.place.inState('unset', 'paused')
    // A change of something else, with its full pass, leaves it paused.
    await t.place.change('unset', { spec: { graceSeconds: 5 } })
    await t.place.ready('unset')
    expect(await checkOf('unset')).toMatchObject({ status: 'paused', grace_seconds: 5 })
  })

  it('is all that the API may change of a managed check', async () => {
    const { status } = await t.place.makeReady('managed')
    for (const method of ['PUT', 'DELETE']) {
      const answer = await t.app.call(
        method,
        `/checks/${status!.checkId}`,
        method === 'PUT' ? { name: 'x' } : undefined,
      )
      expect([method, answer.status]).toEqual([method, 409])
      expect(answer.body.error).toContain(`HeartbeatCheck ${t.place.name}/managed in cluster default`)
    }
  })
})

describe('a check that somebody changed in the database', () => {
  const drifts: [string, string, object][] = [
    ['its name', "update checks set name = 'other' where id = $1", { name: expect.stringMatching(/^drift-/) }],
    ['its description', "update checks set description = 'other' where id = $1", { description: null }],
    ['its period', periodOf('period_seconds = 60'), { period_seconds: 3_600 }],
    [
      'a schedule for its period',
      periodOf("period_seconds = null, schedule = '0 1 * * *', time_zone = 'UTC'"),
      { period_seconds: 3_600 },
    ],
    ['its grace', periodOf('grace_seconds = 1'), { grace_seconds: 3_600 }],
    ['its status, which is suspended', periodOf('status = 0'), { status: 'paused' }],
    [
      'that it is not armed',
      periodOf('status = 0, expected_at = null, due_at = null, wake_at = null'),
      { due_at: expect.any(String) },
    ],
    ['who manages it', "update checks set managed_by = 'api' where id = $1", { managed_by: 'kubernetes' }],
    [
      'whose it is',
      "update checks set managed_by = 'api', kubernetes_cluster = null, kubernetes_namespace = null, kubernetes_name = null, kubernetes_suspend = null where id = $1",
      { managed_by: 'kubernetes' },
    ],
    ['its suspension', 'update checks set kubernetes_suspend = not kubernetes_suspend where id = $1', {}],
  ]

  function periodOf(changes: string): string {
    return `update check_states set ${changes} where check_key = (select key from checks where id = $1)`
  }

  it('is set right within a resync, its ping URL unchanged', async () => {
    const made = await Promise.all(
      drifts.map(async ([what, statement, shown], index) => {
        const name = `drift-${index}`
        const suspend = what.includes('suspen') ? { suspend: true } : {}
        await t.place.makeReady(name, { periodSeconds: 3_600, ...suspend })
        const before = await checkOf(name)
        await t.sql(statement, before.id)
        return { what, before, shown }
      }),
    )
    for (const { what, before, shown } of made) {
      await eventually(`${what} is set right`, async () => {
        const { body } = await t.app.call('GET', `/checks/${before.id}`)
        expect(body).toMatchObject({ public_id: before.public_id, kubernetes: before.kubernetes, ...shown })
        const { rows } = await t.sql('select kubernetes_suspend as suspend from checks where id = $1', before.id)
        expect(rows).toEqual([{ suspend: what.includes('suspen') ? true : null }])
        return true
      })
    }
  })

  it('is made again when its row is gone, and its new URL is published', async () => {
    await t.place.makeReady('lost')
    const before = { check: await checkOf('lost'), url: await t.place.pingUrl('lost') }
    await t.sql('delete from checks where id = $1', before.check.id)
    const url = await eventually('another URL', async () => {
      const now = await t.place.pingUrl('lost')
      return now !== before.url && now
    })
    expect((await fetch(url)).status).toBe(200)
    await eventually('the status names the new check', async () => {
      const { checkId } = (await t.place.get('lost')).status!
      return checkId !== before.check.id
    })
    expect(await checkOf('lost')).toMatchObject({ slug: 'lost', managed_by: 'kubernetes' })
    await eventually('it is Ready', () => t.place.ready('lost'))
  })
})
