import { beforeEach, describe, expect, it } from 'vitest'
import { createReporter, type ReporterOptions } from '../../../src/service/report.ts'
import { escapeHtml, HOSTILE } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const PACKAGE = (await import('../../../package.json', { with: { type: 'json' } })).default
const ESCAPED = escapeHtml(HOSTILE)

const api = use(startTestApi)
const reader = use(() => visit(api, 'read'))
beforeEach(async () => {
  await api.database.query('truncate replicas, clusters, gaps, ping_beats, deliveries, channels, events')
})

const report = (options: Partial<ReporterOptions> = {}) =>
  createReporter({
    ...api.context,
    role: 'api',
    cluster: null,
    isLeading: () => false,
    host: 'api-1',
    ...options,
  }).run()
const age = (host: string, time: string) =>
  api.database.query('update replicas set seen_at = seen_at - $2::interval where host = $1', [host, time])
const show = async (visitor = reader) => (await visitor.get('/service')).text
const problemsOf = (text: string) => [
  ...text.matchAll(/<li>(The replica|No controller|Several|Deadlines|A delivery)(.*?)<\/li>/gs),
]

describe('/service', () => {
  it('says in one sentence that all is well, to every scope, with the facts', async () => {
    await report()
    await report({ role: 'controller', host: 'c-1', cluster: 'east', isLeading: () => true })
    await report({ role: 'controller', host: 'c-2', cluster: 'east' })
    for (const scope of ['read', 'write', 'admin'] as const) {
      const { status, text } = await (await visit(api, scope)).get('/service')
      expect(status).toBe(200)
      expect(text).toContain('All is well.')
      expect(text).toContain(`<dd>${PACKAGE.version}</dd>`)
      expect(text).toContain('<dd>none pending</dd>')
      expect(text).toMatch(/<bdi>api-1<\/bdi>.*Works.*api/s)
      expect(text).toMatch(
        /<bdi>east<\/bdi><\/th>\s*<td data-label="Leader"><span><bdi>c-1<\/bdi> <small class="muted">since <time.*<td data-label="Standbys">1<\/td>/s,
      )
      expect(text).toContain('<p>None is on record.</p>')
    }
  })

  it('says on a standby that the database does not respond', async () => {
    const { database } = api.context
    const { query } = database
    const message = 'cannot access temporary or unlogged relations during recovery'
    const onStandby = (statement: unknown, values?: readonly unknown[]) =>
      /from replicas/.test(String(statement))
        ? Promise.reject(Object.assign(new Error(message), { code: '0A000', severity: 'ERROR' }))
        : query(statement as string, values)
    Object.assign(database, { query: onStandby })
    const { status, text } = await reader.get('/service').finally(() => Object.assign(database, { query }))
    expect(status).toBe(503)
    expect(text).toContain('<h1>The database does not respond</h1>')
    expect((await reader.get('/service')).status).toBe(200)
  })

  it('says since when the Jobs of a cluster are not seen, and so do the list and the pages of its checks', async () => {
    await report()
    const { id } = await api.addCheck({ name: 'followed', schedule: '@hourly' })
    const { rows } = await api.database.query<{ key: number }>('select key from checks where id = $1', [id])
    const { key } = rows[0]!
    await api.database.query(`update check_states set job_area = 'west' where check_key = $1`, [key])
    await api.database.query(`insert into cron_jobs (check_key, name) values ($1, 'followed')`, [key])
    const seen = async (time: string) => {
      await api.database.query('delete from seen_areas')
      await api.database.query(
        `insert into seen_areas (area, cluster, seen_at, watched_since)
          select area, area, clock_timestamp() - $1::interval, clock_timestamp() - interval '1 day' from unnest(array['west', 'unused']) area`,
        [time],
      )
    }
    await seen('50 seconds')
    expect(await show()).toContain('All is well.')
    expect((await reader.get('/checks')).text).not.toContain('not evaluated')
    const ofCheck = async () => (await reader.get(`/checks/${id}`)).text
    expect(await ofCheck()).not.toContain('not evaluated')
    await seen('70 seconds')
    const words =
      /<li>The Jobs of the cluster <bdi>west<\/bdi> have not been seen since [-0-9]{10} [0-9:]{8} UTC, <time[^>]*>1 minute ago<\/time>: deadlines/
    expect(await show()).toMatch(words)
    expect(await show()).toContain('The service needs attention.')
    expect(await show()).not.toContain('<bdi>unused</bdi>')
    const list = (await reader.get('/checks')).text
    expect(list).toContain('Some checks are not evaluated.')
    expect(list).toMatch(words)
    // No controller has reported: the database alone says it.
    expect(await ofCheck()).toContain('This check is not evaluated.')
    expect(await ofCheck()).toMatch(words)
    const other = (await api.addCheck({ name: 'pinged' })).id
    expect((await reader.get(`/checks/${other}`)).text).not.toContain('not evaluated')
    await api.client.delete(`/checks/${other}`)
    await api.database.query('delete from seen_areas')
    await api.client.delete(`/checks/${id}`)
  })

  it('names a replica that did not stop cleanly, until it is replaced', async () => {
    await report()
    await report({ host: 'killed' })
    await age('killed', '20 seconds')
    const text = await show()
    expect(text).toContain('The service needs attention.')
    expect(problemsOf(text)).toHaveLength(1)
    expect(text).toMatch(/The replica <bdi>killed<\/bdi> has not reported for 20 s/)
    expect(text).toContain('Missing for 20 s')
    await report({ host: 'killed' })
    expect(await show()).toContain('All is well.')
  })

  it('names a cluster without a leader, and one whose name two clusters have', async () => {
    const lead = { role: 'controller', cluster: 'east', isLeading: () => true }
    await report({ ...lead, host: 'c-1', isLeading: () => false })
    expect(await show()).toMatch(/No controller leads the cluster <bdi>east<\/bdi>/)
    await report({ ...lead, host: 'c-2' })
    expect(await show()).toContain('All is well.')
    // For some seconds two processes can report that they lead.
    await report({ ...lead, host: 'c-3' })
    expect(await show()).toContain('All is well.')
    await api.database.query("update replicas set leading_since = leading_since - interval '61 seconds'")
    expect(await show()).toMatch(/Several controllers lead under the cluster name <bdi>east<\/bdi>/)
  })

  it('does not miss a cluster that was taken down days ago', async () => {
    await api.database.query(
      "insert into clusters (name, uid, seen_at) values ('old', 'u', now() - interval '23 hours')",
    )
    expect(await show()).toMatch(/No controller leads the cluster <bdi>old<\/bdi>/)
    await api.database.query("update clusters set seen_at = now() - interval '25 hours'")
    const text = await show()
    expect(text).toContain('All is well.')
    expect(text).toContain('not seen for 1 d 1 h')
  })

  it('says how many deliveries wait, and that they are not sent', async () => {
    const { id } = await api.addChannel()
    await api.client.post(`/channels/${id}/test`)
    const text = await show()
    expect(text).toContain('All is well.')
    expect(text).toMatch(/<a href="\/deliveries\?status=pending">1 pending<\/a>, the oldest <time/)
    await api.database.query("update deliveries set next_attempt_at = next_attempt_at - interval '61 seconds'")
    expect(await show()).toMatch(/A delivery was due <time.* and has not been sent/)
  })

  it('says that deadlines are late', async () => {
    const body = await api.addCheck({ name: 'Late' })
    await api.ping(body.public_id)
    expect(await show()).toContain('evaluated on time')
    await api.database.query("update check_states set wake_at = now() - interval '61 seconds'")
    const text = await show()
    expect(text).toContain('Deadlines are evaluated 1 min 1 s late')
    await api.database.query('update check_states set wake_at = null')
  })

  it('has the gaps, and adds up those of the last day', async () => {
    await api.database.query(
      `insert into gaps (started_at, ended_at) values (now() - interval '3 days', now() - interval '3 days' + interval '1 hour'),
        (now() - interval '2 hours', now() - interval '2 hours' + interval '10 seconds'),
        (now() - interval '1 hour', now() - interval '1 hour' + interval '7 seconds')`,
    )
    const text = await show()
    expect(text).toContain('All is well.')
    expect(text).toMatch(
      /Within the last 24 hours no ping could be stored for 17 s, the last time <time[^>]*>59 minutes ago</,
    )
    expect([...text.matchAll(/<td data-label="Lasted">([^<]+)</g)].map(([, lasted]) => lasted)).toEqual([
      '7 s',
      '10 s',
      '1 h',
    ])
  })

  it('says of gaps whether their pings were stored on disk, are being recorded, or may be lost', async () => {
    const addGap = (hoursAgo: number, seconds: number, isSpooled: boolean | null) =>
      api.database.query(
        `insert into gaps (started_at, ended_at, spooled) select t, t + $2 * interval '1 second', $3
          from (select now() - $1 * interval '1 hour') _ (t)`,
        [hoursAgo, seconds, isSpooled],
      )
    const pingsOf = (text: string) => [...text.matchAll(/<td data-label="Pings">([^<]+)</g)].map(([, words]) => words)
    await addGap(3, 20, true)
    await addGap(2, 30, true)
    const text = await show()
    expect(text).toContain('All is well.')
    expect(text).toMatch(
      /Within the last 24 hours the database was unavailable for 50 s, the last time <time[^>]*>1 hour ago<\/time>. Meanwhile pings were stored on disk, and they are recorded\./,
    )
    expect(text).not.toMatch(/Deadlines were moved|no ping could be stored/)
    expect(pingsOf(text)).toEqual(['stored on disk', 'stored on disk'])
    await addGap(1, 10, false)
    await addGap(0.5, 7, null)
    const both = await show()
    expect(both).toMatch(/no ping could be stored for 10 s, the last time .*Deadlines were moved accordingly\./)
    expect(both).toMatch(/the database was unavailable for 57 s, .*on disk, and they are being recorded\./)
    expect(pingsOf(both)).toEqual(['being recorded', 'may be lost', 'stored on disk', 'stored on disk'])
  })

  it('says since when pings wait on disk, and that this takes too long', async () => {
    expect(await show()).toContain('<dt>Pings on disk</dt><dd>none</dd>')
    await api.database.query(
      `insert into ping_beats (id, started_at, beat_at, has_spool, pending_since)
        values (gen_random_uuid(), now(), now(), true, now() - interval '2 minutes')`,
    )
    const text = await show()
    expect(text).toMatch(/<dt>Pings on disk<\/dt><dd>being recorded, the oldest <time[^>]*>2 minutes ago</)
    expect(text).toContain('All is well.')
    await api.database.query("update ping_beats set pending_since = now() - interval '11 minutes'")
    expect(await show()).toMatch(
      /<li>Pings wait on the disk of an api replica; the oldest came <time[^>]*>11 minutes ago/,
    )
  })

  it('shows hostile names as text', async () => {
    await report({ host: HOSTILE, role: 'controller', cluster: HOSTILE })
    const text = await show()
    expect(text).toContain(`<bdi>${ESCAPED}</bdi>`)
    expect(text).not.toContain('<script>alert')
  })

  it('says nothing of another organization, and to it nothing of clusters', async () => {
    await report({ role: 'controller', host: 'c-1', cluster: 'east' })
    const foreign = await api.addOrganization()
    const { id } = await api.addChannel({ name: 'Theirs' }, foreign.keys.admin)
    await api.client.post(`/channels/${id}/test`, undefined, { key: foreign.keys.admin })
    await api.database.query("update deliveries set next_attempt_at = next_attempt_at - interval '1 hour'")
    expect(await show()).toContain('<dd>none pending</dd>')
    const theirs = await show(await visit({ ...api, organizationId: foreign.organizationId }, 'admin'))
    expect(theirs).toContain('1 pending')
    expect(theirs).not.toMatch(/east|Kubernetes clusters|No controller/)
  })
})
