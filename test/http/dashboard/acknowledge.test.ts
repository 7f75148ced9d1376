/** Acknowledging on the page of a check, and its mark in the list. */

import { describe, expect, it } from 'vitest'
import { HOUR } from '../../support/builders.ts'
import { readForm, readText } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(startTestApi)
const writer = use(() => visit(api, 'write'))
const reader = use(() => visit(api, 'read'))

async function takeDown(fields: object = {}) {
  const { id, public_id: publicId } = await api.addCheck(fields)
  await api.ping(publicId, { type: 'fail', exitCode: 1 })
  return { id, publicId, page: `/checks/${id}`, form: `/checks/${id}/acknowledge` }
}
const read = async (id: string) => (await api.client.get(`/checks/${id}`)).body.acknowledged

describe('the page of a check that is down', () => {
  it('acknowledges with an end and a comment, shows both, and ends it', async () => {
    const { id, page, form } = await takeDown()
    const before = (await writer.get(page)).text
    expect(readForm(before, form)).toEqual({ for_seconds: '', comment: '' })
    expect(readText(before)).toContain('until it is up again for 2 hours for 1 day')
    const posted = await writer.post(form, { for_seconds: '7200', comment: 'Disk <b>full</b>' })
    expect([posted.status, posted.location]).toEqual([303, `${page}?done=check-acknowledged`])
    const { at, until, ...shown } = await read(id)
    expect(shown).toMatchObject({ by: { kind: 'user' }, comment: 'Disk <b>full</b>' })
    expect(Date.parse(until) - Date.parse(at)).toBe(2 * HOUR)

    const after = (await writer.get(posted.location!)).text
    expect(readText(after)).toContain('You have it: nothing more is sent of this meanwhile.')
    expect(readText(after)).toMatch(
      /Acknowledged by write-[\w-]+@example\.com since \d\d:\d\d UTC \(less than a minute\), until .*UTC \(in .*\)\. Disk/,
    )
    expect(after).toContain('<bdi>Disk &lt;b&gt;full&lt;/b&gt;</bdi>')
    expect(after).not.toContain(`action="${form}"`)
    const ended = await writer.post(`/checks/${id}/unacknowledge`, readForm(after, `/checks/${id}/unacknowledge`))
    expect(ended.location).toBe(`${page}?done=check-unacknowledged`)
    const last = (await writer.get(ended.location!)).text
    expect(readText(last)).toContain('The acknowledgement has ended: reminders are sent again.')
    expect(last).toContain(`action="${form}"`)
    expect(await read(id)).toBeNull()
  })

  it('acknowledges without fields until the check is up again, and then shows nothing of it', async () => {
    const { id, publicId, page, form } = await takeDown()
    await writer.post(form)
    expect(readText((await writer.get(page)).text)).toMatch(/Acknowledged by .*, until it is up again\./)
    expect(await read(id)).toMatchObject({ until: null, comment: null })
    await api.ping(publicId)
    const up = (await writer.get(page)).text
    expect(up).not.toMatch(/Acknowledged|\/(un)?acknowledge"/)
    expect((await writer.post(form)).status).toBe(409)
  })

  it('refuses what no form of ours sends', async () => {
    const { id, form } = await takeDown()
    for (const fields of [{ for_seconds: '299' }, { for_seconds: 'x' }, { comment: 'x'.repeat(201) }])
      expect((await writer.post(form, fields)).status).toBe(422)
    expect((await writer.post(form, {}, { 'sec-fetch-site': 'cross-site' })).status).toBe(403)
    expect(await read(id)).toBeNull()
  })

  it('shows readers who has it, and no form', async () => {
    const { id, page, form } = await takeDown()
    expect((await reader.get(page)).text).not.toContain('/acknowledge"')
    expect((await reader.post(form)).status).toBe(403)
    await api.client.post(`/checks/${id}/acknowledge`)
    const { text } = await reader.get(page)
    expect(readText(text)).toContain('Acknowledged by the API key admin since')
    expect(text).not.toContain('/unacknowledge"')
    expect((await reader.post(`/checks/${id}/unacknowledge`)).status).toBe(403)
    expect(await read(id)).not.toBeNull()
  })
})

it('the list marks what is acknowledged', async () => {
  const [one, other] = [await takeDown({ name: 'One' }), await takeDown({ name: 'Other' })]
  await writer.post(one.form)
  const { text } = await reader.get('/checks?q=O')
  const rowOf = ({ id }: { id: string }) => new RegExp(`<tr [^>]*id="check-${id}"[\\s\\S]*?</tr>`).exec(text)![0]
  expect(rowOf(one)).toContain('<span class="acknowledged">Acknowledged</span>')
  expect(rowOf(other)).not.toContain('Acknowledged')
  await api.ping(one.publicId)
  expect((await reader.get('/checks?q=O')).text).not.toContain('Acknowledged')
})
