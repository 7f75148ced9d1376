/** The page that pauses a check until a time, and what other pages say of pauses, counts and reminders. */

import { beforeEach, describe, expect, it } from 'vitest'
import { findTimeZone } from '../../../src/domain/time-zone.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { evaluate } from '../../support/evaluate.ts'
import { HOSTILE, readForm, readText } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(() => startTestApi({ kept: { days: 90, flips: 1_000 } }))
const visitor = use(() => visit(api, 'write'))
const reader = use(() => visit(api, 'read'))

let id: string
let publicId: string
beforeEach(async () => {
  ;({ id, public_id: publicId } = await api.addCheck({ schedule: '0 2 * * *', time_zone: 'Europe/Berlin' }))
})

const stored = async () => (await api.client.get(`/checks/${id}`)).body
const formOf = async () => readForm((await visitor.get(`/checks/${id}/pause`)).text, `/checks/${id}/pause`)
const pause = async (fields: Record<string, string>) =>
  visitor.post(`/checks/${id}/pause`, { ...(await formOf()), ...fields })
const faultOf = (page: string, field: string) =>
  new RegExp(`<small id="pause-${field}-fault" class="fault">([^<]*)</small>`).exec(page)?.[1]
const now = () => api.context.clock.now()
/** How the clocks of the zone of the check show a time in a form. */
const local = (at: number) =>
  new Intl.DateTimeFormat('sv-SE', { timeZone: 'Europe/Berlin', dateStyle: 'short', timeStyle: 'short' })
    .format(at)
    .replace(' ', 'T')

describe('the pause page', () => {
  it('asks until when and why, in the time zone of the schedule', async () => {
    const { status, text } = await visitor.get(`/checks/${id}/pause`)
    expect(status).toBe(200)
    expect(await formOf()).toEqual({ end: '', until: '', comment: '' })
    expect(readText(text)).toContain('in the time zone Europe/Berlin')
    for (const words of ['it is resumed', 'in one hour', 'in four hours', 'tomorrow at 08:00'])
      expect(text).toContain(`>${words}</option>`)
    expect((await visitor.get(`/checks/${id}`)).text).toContain(`href="/checks/${id}/pause"`)
    expect((await reader.get(`/checks/${id}/pause`)).status).toBe(403)
    expect((await reader.get(`/checks/${id}`)).text).not.toContain('/pause"')
  })

  it.each([
    ['', null],
    ['3600', HOUR],
    ['14400', 4 * HOUR],
  ])('takes the end %j', async (end, ms) => {
    const from = now()
    const { status, location } = await pause({ end, comment: 'New disks' })
    expect([status, location]).toEqual([303, `/checks/${id}?done=check-paused`])
    const { until, comment, by } = (await stored()).pause
    expect([comment, by.kind]).toEqual(['New disks', 'user'])
    if (ms === null) expect(until).toBeNull()
    else expect(Math.abs(Date.parse(until) - from - ms)).toBeLessThan(MINUTE)
  })

  it('takes the next morning of the zone', async () => {
    await pause({ end: 'tomorrow' })
    const until = Date.parse((await stored()).pause.until)
    expect(local(until)).toBe(`${local(now() + 24 * HOUR).slice(0, 10)}T08:00`)
  })

  it('takes a time of the zone instead of the choice, also just before its clocks change', async () => {
    const zone = findTimeZone('Europe/Berlin')!
    let change = zone.stretchAt(now()).untilMs
    while (zone.offsetAt(change - 1) >= zone.offsetAt(change)) change = zone.stretchAt(change).untilMs
    for (const at of [now() + 24 * HOUR, change - HOUR / 2, change + HOUR / 2]) {
      await pause({ end: '3600', until: local(at) })
      expect(Date.parse((await stored()).pause.until)).toBe(Math.floor(at / MINUTE) * MINUTE)
    }
  })

  it.each([
    ['until', { until: '2020-01-31T12:00' }, 'Time must be a time within 31536000 seconds from now.'],
    ['until', { until: 'soon' }, 'Time must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z.'],
    [
      'until',
      { until: '+275760-09-13T00:00' },
      'Time must be an ISO 8601 time with its offset, for example 2030-01-31T12:00:00Z.',
    ],
    [
      'comment',
      { comment: 'x'.repeat(201) },
      'Comment must be text of at most 200 characters, without control characters.',
    ],
  ])('says beside the field what is wrong with %s: %j', async (field, fields, fault) => {
    const { status, text } = await pause({ end: '3600', ...fields })
    expect([status, faultOf(text, field)]).toEqual([422, fault])
    expect(readForm(text, `/checks/${id}/pause`)).toMatchObject({ end: '3600', ...fields })
    expect((await stored()).pause).toBeNull()
  })

  it('replaces a pause, whose comment it shows', async () => {
    await pause({ end: '3600', comment: 'New disks' })
    const page = (await visitor.get(`/checks/${id}`)).text
    expect(page).toContain('>Change the pause</a>')
    expect(await formOf()).toEqual({ end: '', until: '', comment: 'New disks' })
    await pause({ end: '14400' })
    expect((await stored()).pause).toMatchObject({ comment: 'New disks' })
    await pause({ comment: '' })
    expect((await stored()).pause).toMatchObject({ until: null, comment: null })
  })

  it('is a page of 404 for an unknown check, and pauses none that its resource pauses', async () => {
    expect((await visitor.get('/checks/01999999-9999-7999-8999-999999999999/pause')).status).toBe(404)
    await api.database.query(
      `update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = 'n',
        kubernetes_name = $2, kubernetes_suspend = false where id = $1`,
      [id, id],
    )
    expect((await pause({ end: '3600' })).status).toBe(409)
    expect((await visitor.get(`/checks/${id}`)).text).not.toContain(`href="/checks/${id}/pause"`)
  })
})

it('the page and the list say who paused a check until when, and why, whatever is written there', async () => {
  const comment = HOSTILE.slice(0, 100).toWellFormed()
  const { body } = await api.client.post(`/checks/${id}/pause`, { for_seconds: 7_200, comment })
  expect(body.pause).toMatchObject({ comment })
  const page = (await visitor.get(`/checks/${id}`)).text
  expect(readText(page)).toMatch(/it was paused by the API key admin until .*, and sends no notification: /)
  expect(readText(page)).toMatch(/It resumes by itself at .* \(in 1 hour\)/)
  const list = (await visitor.get('/checks')).text
  expect(readText(list)).toMatch(/paused just now , resumes in 1 hour/)
  for (const text of [page, list]) {
    expect(text).toContain('&lt;script&gt;')
    expect(text).not.toContain('<script>alert')
    expect(text).not.toContain('\u202e')
  }
})

it('the page of a check that its resource pauses until a time says how to resume it', async () => {
  await api.client.post(`/checks/${id}/pause`, { for_seconds: 7_200 })
  await api.database.query(
    `update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = 'payments',
      kubernetes_name = 'nightly', kubernetes_suspend = true where id = $1`,
    [id],
  )
  const page = (await visitor.get(`/checks/${id}`)).text
  expect(page).toContain(
    '>kubectl annotate heartbeatcheck nightly -n payments heartbeat-operator.io/paused-until-</code>',
  )
  expect(page).not.toContain('spec.suspend')
})

it('the page and the list say what is counted, and which thresholds and reminders a check has', async () => {
  const given = { failures_before_down: 3, misses_before_down: 2, remind_every_seconds: 86_400 }
  await api.client.patch(`/checks/${id}`, { ...given, period_seconds: 3_600, grace_seconds: 60 })
  await api.ping(publicId)
  api.moveClock(HOUR + 2 * MINUTE)
  await evaluate(api, id)
  const missed = readText((await visitor.get(`/checks/${id}`)).text)
  expect(missed).toContain('1 of 2 misses in a row: the check is not down yet.')
  expect(missed).toContain('Down after 3 failures or 2 misses in a row')
  expect(missed).toContain('Reminders every day')
  expect(missed).toMatch(/Missed no ping came in time; it was counted, and the check is not down yet/)
  await api.ping(publicId, { type: 'fail', exitCode: 1 })
  await api.ping(publicId, { type: 'fail', exitCode: 1 })
  expect((await visitor.get('/checks')).text).toContain('<span class="counted">2 of 3 failures</span>')
  await api.ping(publicId, { type: 'fail', exitCode: 1 })
  const down = readText((await visitor.get(`/checks/${id}`)).text)
  expect(down).toMatch(/The next reminder is due at .* \(in (1 day|23 hours)\)\./)
  expect(down).not.toContain('in a row: the check')
})
