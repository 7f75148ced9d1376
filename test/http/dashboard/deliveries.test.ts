import { beforeEach, describe, expect, it } from 'vitest'
import { escapeHtml, HOSTILE } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const UNKNOWN = '01999999-9999-7999-8999-999999999999'

const api = use(startTestApi)
const foreign = use(() => api.addOrganization())
const reader = use(() => visit(api, 'read'))
const writer = use(() => visit(api, 'write'))
beforeEach(async () => {
  await api.database.query('truncate deliveries, channels, events')
})

const makeChannel = async (name = 'Pager', key?: string): Promise<string> => (await api.addChannel({ name }, key)).id
/** A check that goes down: one delivery for each channel. */
const makeDown = async (name = 'Backup', project = api.project, key = api.keys.admin): Promise<string> => {
  const { id, public_id } = await api.addCheck({ project_id: project, name }, key)
  await api.ping(public_id, { type: 'fail', exitCode: null })
  return id
}
const listed = async (key = api.keys.read) => (await api.client.get('/deliveries', { key })).body.deliveries
const set = (id: string, assignments: string, values: unknown[] = []) =>
  api.database.query(`update deliveries set ${assignments} where id = $1`, [id, ...values])
const FAILED = `status = 2, attempts = 9, next_attempt_at = null, last_status = 500, last_error = 'example.com responded 500'`
const DELIVERED = `status = 1, attempts = 1, next_attempt_at = null, last_status = 204, delivered_at = now()`
const rowsOf = (text: string) => [...text.matchAll(/<tr id="delivery-([^"]+)">/g)].map(([, id]) => id)
const rowOf = (text: string, id: string) => text.slice(text.indexOf(`<tr id="delivery-${id}">`)).split('</tr>')[0]!

describe('/deliveries', () => {
  it('has what was sent where, with the outcome and why it failed, newest first', async () => {
    const channel = await makeChannel()
    const checks = [await makeDown('First'), await makeDown('Second'), await makeDown('Third')]
    const all = await listed()
    await set(all[1].id, FAILED)
    await set(all[2].id, DELIVERED)
    const { status, text } = await reader.get('/deliveries')
    expect(status).toBe(200)
    expect(rowsOf(text)).toEqual(all.map(({ id }: { id: string }) => id))
    const [pending, failed, delivered] = all.map(({ id }: { id: string }) => rowOf(text, id))
    expect(pending).toContain('Pending')
    expect(pending).toContain('not sent yet')
    expect(failed).toMatch(/Failed.*<strong>500<\/strong>.*example\.com responded 500.*9 attempts/s)
    expect(failed).toContain(`<a href="/checks/${checks[1]}"><bdi>Second</bdi></a>`)
    expect(failed).toContain(`<a href="/channels/${channel}"><bdi>Pager</bdi></a>`)
    expect(delivered).toMatch(/Delivered.*<strong>204<\/strong>.*accepted <time/s)
  })

  it('says which were delivered in a digest', async () => {
    await makeChannel()
    await makeDown('First')
    await makeDown('Second')
    const [alone, together] = await listed()
    for (const { id } of [alone, together]) await set(id, DELIVERED)
    await set(together.id, `digest_id = '${UNKNOWN}'`)
    const { text } = await reader.get('/deliveries')
    expect(rowOf(text, together.id)).toContain(`<span title="Digest ${UNKNOWN}">in a digest with others</span>`)
    expect(rowOf(text, alone.id)).not.toContain('digest')
  })

  it('says why something was not sent', async () => {
    await makeChannel()
    await api.database.query('update channels set muted = true')
    const check = await makeDown()
    const [{ id }] = await listed()
    const { text } = await reader.get('/deliveries?status=suppressed')
    expect(text).toContain('sent, waiting, or not sent, and why')
    expect(rowOf(text, id)).toMatch(/Not sent.*the channel was muted/s)
    expect((await reader.get(`/checks/${check}`)).text).toMatch(/Not sent.*the channel was muted/s)
    await set(id, `reason = 'flapping', cause = null`)
    expect((await reader.get('/deliveries')).text).toContain(
      'the check was flapping: it went down and up, warned or was reminded of too often',
    )
    await set(id, `reason = 'escalation'`)
    expect((await reader.get('/deliveries')).text).toContain('the incident ended before the time of the channel')
  })

  it('shows hostile names and responses as text', async () => {
    await makeChannel(HOSTILE)
    await makeDown(HOSTILE)
    const [{ id }] = await listed()
    await set(id, 'status = 2, next_attempt_at = null, last_error = $2', [`responded 500: ${HOSTILE}`])
    const { text } = await writer.get('/deliveries')
    expect(text).not.toContain('<script>alert')
    const escaped = escapeHtml(HOSTILE)
    expect(rowOf(text, id).split(`<bdi>${escaped}</bdi>`)).toHaveLength(3)
    expect(rowOf(text, id)).toContain(`<bdi>responded 500: ${escaped}</bdi>`)
  })

  it('is filtered by outcome, channel, check and time', async () => {
    const channels = [await makeChannel('One'), await makeChannel('Two')]
    const first = await makeDown('First')
    api.moveClock(2 * 3_600_000)
    await makeDown('Second')
    const all = await listed()
    await set(all[0].id, FAILED)
    const shown = async (query: string) => rowsOf((await reader.get(`/deliveries?${query}`)).text)
    type Listed = { id: string; channel_id: string; check_id: string; created_at: string }
    const idsWhere = (isWanted: (one: Listed) => boolean) => all.filter(isWanted).map(({ id }: Listed) => id)
    expect(all).toHaveLength(4)
    expect(await shown('status=failed')).toEqual([all[0].id])
    expect(await shown(`channel=${channels[1]}`)).toEqual(idsWhere((one) => one.channel_id === channels[1]))
    expect(await shown(`check=${first}`)).toEqual(idsWhere((one) => one.check_id === first))
    expect(await shown('since=1h')).toEqual(idsWhere((one) => one.check_id !== first))
    expect(await shown('since=24h')).toHaveLength(4)
    expect(await shown(`since=${all[1].created_at}`)).toEqual(idsWhere((one) => one.check_id !== first))
    expect(await shown(`status=&channel=&since=`)).toHaveLength(4)
    expect(await shown(`check=${UNKNOWN}`)).toEqual([])
    const { text } = await reader.get(`/deliveries?check=${first}&status=pending`)
    expect(text).toContain('Only of <bdi>First</bdi>')
    expect(text).toContain('<option value="pending" selected>Pending</option>')
    // The form keeps the check, and its link drops it.
    expect(text).toContain(`<input type="hidden" name="check" value="${first}">`)
    expect(text).toContain('href="/deliveries?status=pending"')
  })

  it('has pages that keep the filters', async () => {
    await makeChannel()
    const check = await makeDown()
    await api.database.query(
      `insert into deliveries (event_id, channel_id, id, organization_id, project_id, check_id, type, status, give_up_at, created_at)
        select gen_random_uuid(), channel_id, ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, organization_id, project_id,
          check_id, type, 2, now(), now() from deliveries, generate_series(1, 60) n`,
    )
    const first = await reader.get(`/deliveries?status=failed&check=${check}`)
    expect(rowsOf(first.text)).toHaveLength(50)
    const older = /<a href="([^"]+)" rel="next">/.exec(first.text)![1]!.replaceAll('&amp;', '&')
    expect(older).toMatch(new RegExp(`^/deliveries\\?status=failed&check=${check}&cursor=deliveries\\.`))
    const second = await reader.get(older)
    expect(rowsOf(second.text)).toHaveLength(10)
    expect(second.text).not.toContain('rel="next"')
    expect(new Set([...rowsOf(first.text), ...rowsOf(second.text)]).size).toBe(60)
  })

  it.each([
    ['status=late', 'Status must be one of pending, delivered, failed, suppressed.'],
    ['channel=1', 'Channel_id must be a UUID.'],
    ['since=yesterday', 'Since must be an ISO 8601 time'],
    ['since=constructor', 'Since must be an ISO 8601 time'],
    ['cursor=x', 'Cursor must be the next_cursor of an earlier response.'],
  ])('rejects %s with a page', async (query, words) => {
    const { status, text } = await reader.get(`/deliveries?${query}`)
    expect(status).toBe(422)
    expect(text).toContain(words)
  })

  it('says what to do when there is none', async () => {
    expect((await reader.get('/deliveries')).text).toContain('Nothing was sent yet.')
    expect((await reader.get('/deliveries?status=failed')).text).toContain('No delivery matches.')
  })

  it('has none of another organization', async () => {
    const theirs = await makeChannel('Theirs', foreign.keys.admin)
    await makeDown('Foreign', foreign.project, foreign.keys.admin)
    expect(rowsOf((await reader.get('/deliveries')).text)).toEqual([])
    const { text } = await reader.get(`/deliveries?channel=${theirs}`)
    expect(text).not.toContain('Theirs')
    expect(text).toContain('Another channel')
  })
})

describe('"Send again"', () => {
  it('stands at deliveries that failed or were delivered, and leads back to the same list', async () => {
    await makeChannel()
    await makeDown('First')
    await makeDown('Second')
    await makeDown('Third')
    const all = await listed()
    await set(all[0].id, FAILED)
    await set(all[1].id, DELIVERED)
    const { text } = await writer.get('/deliveries?since=24h')
    const [failed, delivered, pending] = all.map(({ id }: { id: string }) => rowOf(text, id))
    expect(pending).not.toContain('Send again')
    for (const [index, row] of [failed, delivered].entries()) {
      expect(row).toContain(`<form method="post" action="/deliveries/${all[index].id}/retry">`)
      expect(row).toContain('>Send again</button>')
      const back = /name="back" value="([^"]+)"/.exec(row)![1]!
      const { status, location } = await writer.post(`/deliveries/${all[index].id}/retry`, { back })
      expect([status, location]).toEqual([303, '/deliveries?since=24h&done=sent-again'])
    }
    expect((await listed()).map(({ status }: { status: string }) => status)).toEqual(['pending', 'pending', 'pending'])
    const after = await writer.get('/deliveries?since=24h&done=sent-again')
    expect(after.text).toContain('The delivery is sent again, at once.')
    expect(after.text).not.toContain('Send again')
  })

  it('leads to no other site', async () => {
    await makeChannel()
    await makeDown()
    const [{ id }] = await listed()
    for (const back of ['https://evil.example.com/', '//evil.example.com', '']) {
      await set(id, FAILED)
      expect((await writer.post(`/deliveries/${id}/retry`, { back })).location).toBe('/deliveries?done=sent-again')
    }
  })

  it('is not for the scope read', async () => {
    await makeChannel()
    await makeDown()
    const [{ id }] = await listed()
    await set(id, FAILED)
    const { text } = await reader.get('/deliveries')
    expect(text).not.toMatch(/Send again|<form method="post" action="\/deliveries/)
    expect(text.slice(text.indexOf('<main'))).not.toContain('<button')
    expect(text).toContain('class="delivery-filters" data-submit>')
    expect(text).toContain('<input type="submit" class="secondary scriptless-only" value="Show">')
    expect((await reader.post(`/deliveries/${id}/retry`)).status).toBe(403)
    expect((await listed())[0].status).toBe('failed')
  })

  it('is 404 for a delivery of another organization, and says why a muted channel gets none', async () => {
    await makeChannel('Theirs', foreign.keys.admin)
    await makeDown('Foreign', foreign.project, foreign.keys.admin)
    const [theirs] = await listed(foreign.keys.read)
    await set(theirs.id, FAILED)
    for (const id of [theirs.id, UNKNOWN, 'x']) expect((await writer.post(`/deliveries/${id}/retry`)).status).toBe(404)
    const channel = await makeChannel()
    await makeDown()
    const [{ id }] = await listed()
    await api.client.put(`/channels/${channel}`, { muted: true })
    const { status, text } = await writer.post(`/deliveries/${id}/retry`)
    expect(status).toBe(409)
    expect(text).toContain('The channel of the delivery is muted: unmute it first.')
  })
})
