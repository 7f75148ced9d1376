/** A HeartbeatCheck becomes a check, follows its changes, and is set right when its check is changed elsewhere. */

import { describe, expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { useScene } from './scene.ts'

const t = useScene()

describe('a new HeartbeatCheck', () => {
  it('becomes a check of its namespace, armed at once', async () => {
    await t.place.makeReady('nightly', { schedule: '0 2 * * *' })
    expect(await t.checkOf('nightly')).toMatchObject({
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
  it('has each field changed in the service, and given back', async () => {
    const name = 'changing'
    const times = { graceSeconds: 60, maxRuntimeSeconds: 90, schedule: '15 3 * * 1', timeZone: 'Europe/Berlin' }
    const texts = { displayName: ' Nightly backup ', description: 'Ask the shop team' }
    const change = { ...texts, periodSeconds: null, warnExitCodes: [24, 3], ...times }
    const shown = {
      name: 'Nightly backup',
      description: 'Ask the shop team',
      period_seconds: null,
      grace_seconds: 60,
      max_runtime_seconds: 90,
      warn_exit_codes: [3, 24],
      schedule: '15 3 * * 1',
      time_zone: 'Europe/Berlin',
    }
    await t.place.makeReady(name, { periodSeconds: 3_600 })
    const before = await t.checkOf(name)
    await t.place.change(name, { spec: change })
    await t.place.ready(name)
    expect(await t.checkOf(name)).toMatchObject({ ...shown, id: before.id, public_id: before.public_id })
    const taken = Object.fromEntries(Object.keys(change).map((field) => [field, null]))
    await t.place.change(name, { spec: { ...taken, periodSeconds: 3_600 } })
    await t.place.ready(name)
    const { due_at: _, expected_at: _expected, updated_at: _updated, ...kept } = before
    expect(await t.checkOf(name)).toMatchObject(kept)
  })
})

describe('suspend', () => {
  const pause = async (name: string, verb: 'pause' | 'resume') => {
    const { status } = await t.place.get(name)
    return t.app.call('PATCH', `/checks/${status!.checkId}/${verb}`)
  }

  it('suspend pauses the check while it is true, and resumes it when it is false; the API is rejected meanwhile', async () => {
    await t.place.makeReady('suspended', { periodSeconds: 3_600, suspend: true })
    expect(await t.checkOf('suspended')).toMatchObject({ status: 'paused', due_at: null })
    expect(await t.place.condition('suspended', 'Up')).toMatchObject({ status: 'Unknown', reason: 'Suspended' })
    const refused = await pause('suspended', 'resume')
    expect(refused.status).toBe(409)
    expect(refused.body.error).toContain(`${t.place.name}/suspended`)
    await t.place.change('suspended', { spec: { suspend: false } })
    await t.place.ready('suspended')
    expect(await t.checkOf('suspended')).toMatchObject({ status: 'new', due_at: expect.any(String) })
    expect((await pause('suspended', 'pause')).status).toBe(409)
  })
})

describe('a check that was changed in the database', () => {
  const drifts: [string, string, object][] = [
    ['its name', "update checks set name = 'other' where id = $1", { name: expect.stringMatching(/^drift-/) }],
    ['its description', "update checks set description = 'other' where id = $1", { description: null }],
    ['its grace', periodOf('grace_seconds = 1'), { grace_seconds: 360 }],
    ['its status, which is suspended', periodOf('status = 0'), { status: 'paused' }],
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
        const before = await t.checkOf(name)
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

  it.each([
    ['keeps the URL that is in its own Secret', 'kept', { kind: 'Secret' }],
    ['keeps the URL that is in its own ConfigMap', 'configured', { kind: 'ConfigMap' }],
  ])('is made again when its row is gone, and %s', async (_, name, publish) => {
    await t.place.makeReady(name, { periodSeconds: 3_600, publish })
    const before = await t.checkOf(name)
    await t.sql('delete from checks where id = $1', before.id)
    const now = await whenReplaced(name, before.id)
    expect(now).toMatchObject({ slug: name, managed_by: 'kubernetes', public_id: before.public_id, status: 'new' })
    expect((await fetch(`${t.app.pingUrl}/ping/${before.public_id}`)).status).toBe(200)
    const { type, note } = await t.place.event(name, 'CheckLost')
    expect([type, note]).toEqual(['Warning', expect.stringContaining('the same ping URL')])
    await t.place.ready(name)
  })

  it('is not made again while its own Secret may not be read: the URL in it would be lost', async () => {
    await t.place.makeReady('unread')
    const before = await t.checkOf('unread')
    const message = `secrets "unread-heartbeat" is forbidden: User "system:serviceaccount:monitoring:heartbeat" cannot get resource "secrets" in API group "" in the namespace "${t.place.name}"`
    const isRead = (request: { method: string; path: string }) =>
      request.method === 'GET' && request.path.endsWith('/secrets/unread-heartbeat')
    const end = t.cluster.server.disturb(isRead, { status: 403, reason: 'Forbidden', message }, 10_000)
    await t.sql('delete from checks where id = $1', before.id)
    const says = `cannot be read without the right to; an administrator of the namespace grants it with: kubectl create rolebinding heartbeat-operator-publisher -n ${t.place.name} --clusterrole=<fullname>-<namespace>-publisher --serviceaccount=monitoring:heartbeat;`
    // A resync in between has found that it could not write.
    await eventually('it is not made again', async () => {
      expect(await t.place.stalled('unread', 'PublishRefused')).toContain(says)
      return true
    })
    const { rows } = await t.sql('select from checks where kubernetes_name = $1', 'unread')
    expect(rows).toEqual([])
    end()
    await t.place.ready('unread')
    expect(await t.checkOf('unread')).toMatchObject({ public_id: before.public_id })
    expect((await t.place.event('unread', 'CheckLost')).note).toContain('the same ping URL')
  })

  it('has another URL when its row is gone and its Secret has been changed', async () => {
    const name = 'edited'
    await t.place.makeReady(name)
    const before = await t.checkOf(name)
    const url = await t.place.pingUrl(name)
    await t.operator().stop()
    const data = { HEARTBEAT_URL: btoa('http://evil/ping/0190b8a0-0000-4000-8000-00000000000a') }
    await t.place.patch('secrets', `${name}-heartbeat`, { data })
    await t.sql('delete from checks where id = $1', before.id)
    await t.restart()
    const now = await whenReplaced(name, before.id)
    expect(now.public_id).not.toBe(before.public_id)
    const { type, note } = await t.place.event(name, 'CheckLost')
    expect([type, note]).toEqual(['Warning', expect.stringContaining('a new ping URL, so the job must read it again')])
    await eventually('it is published', async () => {
      const published = await t.place.pingUrl(name)
      return published !== url && published === `${t.app.pingUrl}/ping/${now.public_id}`
    })
  })

  const whenReplaced = (name: string, id: string) =>
    eventually('the status names another check', async () => {
      const found = await t.place.get(name)
      return found.status?.checkId !== undefined && found.status.checkId !== id && t.checkOf(name)
    })
})
