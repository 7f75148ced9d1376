/** The page of a check: every status, hostile texts, scopes, actions. */

import { describe, expect, it } from 'vitest'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { evaluate } from '../../support/evaluate.ts'
import { readText as read } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { createVisitor, visit } from '../../support/visitor.ts'

const api = use(() => startTestApi({ kept: { days: 90, flips: 1_000 } }))
const visitor = use(() => visit(api))

const HOSTILE = `<script>alert("1")</script>'&\u202Eevil`
const ESCAPED = '&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39;&amp;'

const addCheck = (fields: object = {}) => api.addCheck({ period_seconds: 3_600, grace_seconds: 300, ...fields })

async function declare(id: string, suspend: boolean | null, namespace = 'payments'): Promise<void> {
  // A resource declares one check.
  await api.database.query("delete from checks where managed_by = 'kubernetes'")
  await api.database.query(
    `update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = $3,
       kubernetes_name = 'nightly', kubernetes_suspend = $2 where id = $1`,
    [id, suspend, namespace],
  )
}

async function open(id: string, by = visitor): Promise<string> {
  const { status, text } = await by.get(`/checks/${id}`)
  expect(status).toBe(200)
  return text
}

describe('the status of a check', () => {
  it('new: waits for the first ping, with a way to send it', async () => {
    const { id } = await addCheck()
    const page = await open(id)
    expect(read(page)).toMatch(
      /New since \d\d:\d\d UTC \(less than a minute\): it was created, and the job has not reported yet/,
    )
    expect(read(page)).toContain('Nothing is expected before the first ping.')
    expect(page).toContain(`<a class="button" href="/checks/${id}/how">Send the first ping</a>`)
    expect(read(page)).toContain('No ping has come yet.')
  })

  it('up: what is expected, what is normal, when it last worked', async () => {
    const { id, public_id } = await addCheck({
      max_runtime_seconds: 600,
      time_zone: 'Europe/Berlin',
      schedule: '0 2 * * *',
      period_seconds: undefined,
    })
    for (const durationMs of [100_000, 120_000, 200_000]) await api.ping(public_id, { durationMs })
    const page = read(await open(id))
    expect(page).toMatch(/Up since \d\d:\d\d (CET|CEST) \(less than a minute\): the job reported a success/)
    expect(page).toMatch(
      /A success is expected at (\d+ \w+( \d{4})?, )?02:00 (CET|CEST) \(in (less than a minute|\d+ (day|hour|minute)s?)\)\. Without one the check is down at (\d+ \w+( \d{4})?, )?02:05/,
    )
    expect(page).toContain('Last success just now')
    expect(page).toContain('A run normally takes 2 min; 95 % within 3 min 20 s (of 3 runs)')
    expect(page).toContain('At 02:00 every day, Berlin')
    expect(page).toContain('Maximum run time 10 min')
    expect(page).toContain('7 days 100 % never')
  })

  it('running: since when, and until when it may', async () => {
    const { id, public_id } = await addCheck({ max_runtime_seconds: 600 })
    await api.ping(public_id, { type: 'start', exitCode: null })
    const shown = await open(id)
    const page = read(shown)
    expect(page).toMatch(/Running since \d\d:\d\d UTC \([\d.]+ m?s\)/)
    expect(page).toMatch(/The run should end by (\d+ \w+( \d{4})?, )?\d\d:\d\d UTC \(in 9 minutes\)|in 10 minutes/)
    expect(shown).toMatch(/aria-label="Timeline of 1 run since [^"]*: 1 running"/)
  })

  it('late, then down by a missed ping', async () => {
    await using later = await startTestApi()
    const own = await visit(later)
    const { id, public_id } = await later.addCheck({ period_seconds: 3_600, grace_seconds: 7_200 })
    await later.ping(public_id)
    later.moveClock(HOUR + 10 * MINUTE)
    const late = read(await open(id, own))
    expect(late).toMatch(/Late since .*UTC \(10 minutes\): a ping was expected, and the grace time is running/)
    expect(late).toMatch(/Down at .*UTC \(in 1 hour\) unless the job reports a success\./)
    later.moveClock(4 * HOUR)
    await evaluate(later, id)
    expect(read(await open(id, own))).toMatch(/Down since .*UTC \(2 hours\): no ping came in time; it was due at/)
  })

  it('down by a failure: the exit code, the output, the next step', async () => {
    const { id, public_id } = await addCheck()
    await api.ping(public_id)
    await api.ping(public_id, { type: 'fail', exitCode: 1, body: Buffer.from('disk full\n') })
    const page = await open(id)
    expect(read(page)).toMatch(/Down since \d\d:\d\d UTC \(less than a minute\): the job reported exit code 1/)
    expect(read(page)).toMatch(
      /The next success ends this; by its schedule the job runs next at .* \(in 59 minutes\)\./,
    )
    expect(read(page)).toMatch(/Last output Came with the newest ping: fail with exit code 1, just now disk full/)
    expect(page.indexOf('disk full')).toBeLessThan(page.indexOf('Last success'))
    expect(page.indexOf('A run normally takes')).toBeLessThan(page.indexOf('id="uptime-title"'))
    // A later failure without text and code: the status keeps its cause, the text its ping.
    await api.ping(public_id, { type: 'fail', exitCode: null })
    expect(read(await open(id))).toMatch(/the job reported exit code 1 .*Came with a ping: fail with exit code 1/)
  })

  it('up with a warning: what a person should look at, also after its exit code', async () => {
    const { id, public_id } = await addCheck({ warn_exit_codes: [3] })
    await api.ping(public_id, { type: 'fail', exitCode: 3, body: Buffer.from('could not read /etc/shadow\n') })
    const page = read(await open(id))
    expect(page).toContain('Its last run ended with a warning: a person should look at what it reported.')
    expect(page).toContain('could not read /etc/shadow')
    expect(page).toMatch(/Timeline of 1 run .*1 ended with a warning|ended with a warning/)
    await api.ping(public_id)
    expect(read(await open(id))).not.toContain('Its last run ended with a warning')
  })

  it('flapping', async () => {
    const { id, public_id } = await addCheck()
    for (let change = 0; change < 13; change += 1)
      await api.ping(public_id, change % 2 === 0 ? {} : { type: 'fail', exitCode: 2 })
    const page = read(await open(id))
    expect(page).toContain('It is flapping: it went down and up more than 10 times within 10 minutes.')
    expect(page).toContain('7 days')
    expect(page).toMatch(/\d+ times/)
  })

  it('paused, resumed by one click each', async () => {
    const { id, public_id } = await addCheck()
    await api.ping(public_id)
    const paused = await visitor.post(`/checks/${id}/pause`)
    expect([paused.status, paused.location]).toEqual([303, `/checks/${id}?done=check-paused`])
    const page = (await visitor.get(paused.location!)).text
    expect(read(page)).toContain('The check is paused. It sends no notification until it is resumed.')
    expect(read(page)).toMatch(/Paused since .*: it was paused by admin@example.com, and sends no notification/)
    expect(read(page)).toContain('Nothing is expected until it is resumed.')
    expect(page).not.toMatch(/action="[^"]*\/pause"/)
    const resumed = await visitor.post(`/checks/${id}/resume`)
    expect([resumed.status, resumed.location]).toEqual([303, `/checks/${id}?done=check-resumed`])
    expect(read(await open(id))).toMatch(/New since .*: it was resumed, and the job has not reported since/)
  })
})

describe('the history of a check', () => {
  it('has runs, durations, changes, and the limit where it is near', async () => {
    const { id, public_id } = await addCheck({ max_runtime_seconds: 5 })
    for (const durationMs of [2_000, 3_000]) await api.ping(public_id, { durationMs })
    await api.ping(public_id, { type: 'fail', exitCode: 9, durationMs: 4_000 })
    const page = await open(id)
    expect(page).toMatch(
      /<svg class="plot timeline" role="img" [^>]*aria-label="Timeline of 3 runs since [^"]*: 2 succeeded, 1 failed"/,
    )
    expect(page).toContain(
      'aria-label="How long the last 3 runs took. Of the last 2 runs that succeeded: median 2.5 s, 95 % at most 3 s"',
    )
    expect(page.match(/class="plot-run run-success"/g)).toHaveLength(4)
    expect(page.match(/class="plot-run run-fail"/g)).toHaveLength(2)
    expect(page).toContain('class="plot-line line-limit"')
    expect(read(page)).toContain('Median 2.5 s')
    expect(read(page)).toMatch(/failed, exit code 9 4 s Ping/)
    expect(read(page)).toMatch(
      /Changes of status Down the job reported a failure \( ping \) .*just now Up the first success/,
    )
    // The policy of the page allows no inline style.
    expect(page).not.toMatch(/\sstyle=/)
  })

  it('says how far the history reaches, and leaves our downtime out with a note', async () => {
    const { id, public_id } = await addCheck()
    await api.ping(public_id)
    await api.database.query(
      "update flips set at = at - interval '3 hours', id = gen_random_uuid() where check_key = (select key from checks where id = $1) and reason = 'created'",
      [id],
    )
    const { rows } = await api.database.query<{ key: number }>('select key from checks where id = $1', [id])
    await api.database.query("delete from flips where check_key = $1 and reason = 'created'", [rows[0]!.key])
    await api.database.query("update flips set at = at - interval '3 hours', from_status = null where check_key = $1", [
      rows[0]!.key,
    ])
    await api.database.query(
      "insert into gaps (started_at, ended_at) values (now() - interval '90 minutes', now() - interval '80 minutes')",
    )
    const page = read(await open(id))
    await api.database.query('delete from gaps')
    expect(page).toMatch(/30 days 100 % never \(counted since .*UTC\)/)
    expect(page).toContain('Neither does 10 min in which this service could take no pings')
  })

  it('shows the newest 50 pings with the last 4 KB of each text, and leads to the others', async () => {
    const { id, public_id } = await addCheck()
    const long = `START${'ä'.repeat(4_000)}END`
    await api.ping(public_id, { type: 'fail', exitCode: 1, body: Buffer.from('the oldest') })
    for (let index = 0; index < 50; index += 1)
      await api.ping(public_id, index === 49 ? { body: Buffer.from(long) } : {})
    const page = await open(id)
    expect(page.match(/<li id="ping-/g)).toHaveLength(50)
    expect(page).not.toContain('START')
    expect(page).toMatch(/<details id="text-[0-9a-f-]{36}"><summary>Text, 7\.8 KB<\/summary>/)
    expect(page).toContain(`${'ä'.repeat(2_046)}END</pre>`)
    expect(page).not.toContain('\uFFFD')
    const whole = /href="(\/checks\/[^"]+)">The last 4 KB; show the whole text/.exec(page)![1]!
    expect((await visitor.get(whole)).text).toContain(long)
    expect((await visitor.get(`${whole}/text`)).text).toBe(long)
    const next = /href="([^"]+)">Older pings</.exec(page)![1]!
    expect((await visitor.get(next)).text.match(/<li id="ping-/g)).toHaveLength(1)
    const first = await visitor.get(`/checks/${id}/pings`)
    const older = /href="([^"]+)" rel="next">Older</.exec(first.text)![1]!.replaceAll('&amp;', '&')
    expect((await visitor.get(older)).text).toContain('the oldest')
    const failures = (await visitor.get(`/checks/${id}/pings?type=fail`)).text
    expect(failures.match(/<li id="ping-/g)).toHaveLength(1)
    expect(failures).toContain('aria-current="page">Failure</a>')
  })

  it('has the deliveries of its events, with the response', async () => {
    const config = { url: 'https://hooks.example.com/secret-path' }
    const channel = await api.addChannel({ name: HOSTILE.replace('\u202E', ''), config })
    const { id, public_id } = await addCheck()
    await api.ping(public_id)
    await api.ping(public_id, { type: 'fail', exitCode: 1 })
    await api.database.query(
      'update deliveries set status = 2, next_attempt_at = null, attempts = 4, last_status = 503 where check_id = $1',
      [id],
    )
    const page = await open(id)
    await api.client.delete(`/channels/${channel.id}`)
    expect(read(page)).toMatch(
      /Deliveries Event Channel Outcome Response Action Down just now .* Failed 503 · 4 attempts Send again/,
    )
    expect(page).toContain(`<a href="/channels/${channel.id}"><bdi>${ESCAPED}`)
    expect(page).not.toContain('secret-path')
  })
})

describe('hostile texts stay text', () => {
  it('in body, name, description, tags, slug and namespace', async () => {
    const { id, public_id } = await addCheck({ name: HOSTILE, description: HOSTILE, tags: ['a:b/c'] })
    await declare(id, null, HOSTILE)
    await api.ping(public_id, { body: Buffer.from(HOSTILE) })
    await api.ping(public_id, { type: 'fail', exitCode: 255, body: Buffer.from(HOSTILE) })
    const { rows } = await api.database.query<{ id: string }>(
      'select p.id from pings p join checks c on c.key = p.check_key where c.id = $1',
      [id],
    )
    for (const path of ['', '/pings', `/pings/${rows[0]!.id}`, '/delete']) {
      const { text, status } = await visitor.get(`/checks/${id}${path}`)
      expect(status, path).toBe(200)
      expect(text, path).not.toContain('<script>alert')
      expect(text, path).not.toContain(HOSTILE)
      expect(text, path).toContain(ESCAPED)
    }
    // A name that is no name of Kubernetes does not become a command of a shell.
    expect(read(await open(id))).toContain(`-n '&lt;script&gt;alert("1")&lt;/script&gt;'\\''&amp;\u202Eevil'`)
  })

  it.each([
    ['not UTF-8', Buffer.from([0xff, 0xfe, 0x00, 0x9f, 0x80, 0x01]), 'The job sent binary data.'],
    ['binary', Buffer.from(Array.from({ length: 5_000 }, (_, at) => (at * 7) % 256)), 'The job sent binary data.'],
    [
      'a few wrong bytes',
      Buffer.concat([Buffer.from('Größe: 100 files, all copied '), Buffer.from([0xff])]),
      'Größe: 100 files, all copied \uFFFD',
    ],
    ['colours', Buffer.from('\x1b[31mred\x1b[0m'), 'red'],
    ['white space', Buffer.from(' \n\n'), 'The text is empty.'],
    ['other scripts', Buffer.from('备份失败 גיבוי نسخة'), '备份失败 גיבוי نسخة'],
    ['a change of direction', Buffer.from('abc\u202Edef'), 'abcdef'],
  ])('a body with %s', async (_, body, shown) => {
    const { id, public_id } = await addCheck()
    await api.ping(public_id, { body })
    expect(read(await open(id))).toContain(shown)
    const { rows } = await api.database.query<{ id: string }>(
      'select p.id from pings p join checks c on c.key = p.check_key where c.id = $1',
      [id],
    )
    const whole = await visitor.get(`/checks/${id}/pings/${rows[0]!.id}`)
    expect(whole.status).toBe(200)
    const sent = await visitor.get(`/checks/${id}/pings/${rows[0]!.id}/text`)
    expect(sent.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(sent.text).toBe(body.toString('utf8'))
  })
})

describe('a check that Kubernetes manages', () => {
  it('shows its resource and the commands to look further', async () => {
    const { id } = await addCheck()
    await declare(id, null)
    const page = await open(id)
    expect(read(page)).toContain('The HeartbeatCheck payments/nightly declares this check.')
    for (const command of [
      'kubectl describe heartbeatcheck nightly -n payments',
      'kubectl events --for hbc/nightly -n payments',
      'kubectl get cronjobs,jobs,pods -n payments',
    ])
      expect(page).toContain(`>${command}</code>`)
    expect((await visitor.post(`/checks/${id}/pause`)).status).toBe(303)
  })

  it('is deleted there, and the page says how', async () => {
    const { id } = await addCheck()
    await declare(id, null)
    const { text } = await visitor.get(`/checks/${id}/delete`)
    expect(text).toContain('kubectl delete heartbeatcheck nightly -n payments')
    expect(text).not.toContain(`action="/checks/${id}/delete"`)
    const { status, text: rejected } = await visitor.post(`/checks/${id}/delete`)
    expect([status, read(rejected).includes('Check is managed by HeartbeatCheck payments/nightly')]).toEqual([
      409,
      true,
    ])
  })

  it.each([
    [true, 'resume', 'false'],
    [false, 'pause', 'true'],
  ])('with spec.suspend: %s has no button but the command to %s it', async (suspend, verb, value) => {
    const { id } = await addCheck()
    if (suspend) await visitor.post(`/checks/${id}/pause`)
    await declare(id, suspend)
    const page = await open(id)
    expect(page).not.toMatch(/action="\/checks\/[^"]*\/(pause|resume)"/)
    expect(read(page)).toContain(`sets spec.suspend , so ${verb} the check there`)
    expect(read(page)).toContain(`--type merge -p '{"spec":{"suspend":${value}}}'`)
    expect((await visitor.post(`/checks/${id}/${verb}`)).status).toBe(409)
  })
})

describe('deleting', () => {
  it('asks first and says what is lost, then deletes', async () => {
    const { id, public_id } = await addCheck({ name: 'Old job' })
    await api.ping(public_id)
    const { text } = await visitor.get(`/checks/${id}/delete`)
    expect(read(text)).toContain('pings (1 in all) with their texts, changes of status, uptime')
    expect(read(text)).toContain('It reported just now')
    expect(text).toContain(`<form method="post" action="/checks/${id}/delete"`)
    const { status, location } = await visitor.post(`/checks/${id}/delete`)
    expect([status, location]).toEqual([303, '/checks?done=check-deleted'])
    expect((await visitor.get(location!)).text).toContain('The check is deleted.')
    expect((await visitor.get(`/checks/${id}`)).status).toBe(404)
    expect((await visitor.post(`/checks/${id}/delete`)).status).toBe(404)
  })
})

describe('access', () => {
  const PATHS = ['', '/pings', '/delete', '/pings/00000000-0000-7000-8000-000000000000']

  it('scope read sees no ping URL and no button, and can do nothing', async () => {
    const { id, public_id } = await addCheck()
    await api.ping(public_id, { type: 'fail', exitCode: 1, body: Buffer.from('text') })
    const reader = await visit(api, 'read')
    const page = await open(id, reader)
    const main = page.slice(page.indexOf('<main'))
    expect(main).not.toContain(public_id)
    expect(main).not.toContain('ping.example.com')
    expect(main).not.toMatch(/<form|<button|class="button|\/how"|\/edit"|\/delete"/)
    for (const action of ['pause', 'resume', 'delete'])
      expect((await reader.post(`/checks/${id}/${action}`)).status).toBe(403)
    expect((await reader.get(`/checks/${id}/delete`)).status).toBe(403)
    expect((await reader.get(`/checks/${id}/pings`)).status).toBe(200)
    const writer = await visit(api, 'write')
    expect(await open(id, writer)).toContain(`https://ping.example.com/ping/${public_id}`)
    // The commands of a check of Kubernetes are there to read.
    await declare(id, false)
    const ofCluster = await open(id, reader)
    expect(ofCluster).toContain('<code id="kubectl-1">kubectl describe heartbeatcheck nightly -n payments</code>')
    expect(ofCluster.slice(ofCluster.indexOf('<main'))).not.toContain('<button')
    expect(await open(id, writer)).toContain('data-copy="kubectl-1"')
  })

  it("of another organization's check, an unknown and a malformed id is 404", async () => {
    const other = await api.addOrganization()
    const { body } = await api.client.post(
      '/checks',
      { project_id: other.project, name: 'Theirs' },
      { key: other.keys.admin },
    )
    for (const id of [body.id, '00000000-0000-7000-8000-000000000000', 'x', '%00', '..%2f..', 'a'.repeat(5_000)]) {
      for (const path of PATHS) expect((await visitor.get(`/checks/${id}${path}`)).status, `${id}${path}`).toBe(404)
      for (const action of ['pause', 'resume', 'delete'])
        expect((await visitor.post(`/checks/${id}/${action}`)).status, `${id} ${action}`).toBe(404)
    }
    const { id } = await addCheck()
    for (const ping of ['x', '00000000-0000-7000-8000-000000000000'])
      for (const end of ['', '/text']) expect((await visitor.get(`/checks/${id}/pings/${ping}${end}`)).status).toBe(404)
  })

  it('without a session leads to the log-in', async () => {
    const { id } = await addCheck()
    const stranger = createVisitor(new URL(api.url).origin)
    expect((await stranger.get(`/checks/${id}`)).location).toBe(`/login?next=${encodeURIComponent(`/checks/${id}`)}`)
    expect((await stranger.post(`/checks/${id}/pause`)).location).toBe('/login')
  })

  it.each(['?type=nothing', '?cursor=nothing'])('a broken address of pings is 422: %s', async (query) => {
    const { id } = await addCheck()
    expect((await visitor.get(`/checks/${id}/pings${query}`)).status).toBe(422)
  })
})
