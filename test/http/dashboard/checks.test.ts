import { beforeEach, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { Spec } from '../../../src/operator/schema/spec.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR } from '../../support/builders.ts'
import { addCheck } from '../../support/check.ts'
import { escapeHtml } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { addProject, addTenant, anAdmin, type TestTenant } from '../../support/tenant.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(startTestApi)
const tenant = use(
  async (): Promise<TestTenant> => ({ ...anAdmin(api.organizationId), projectId: null, project: api.project }),
)
const visitor = use(() => visit(api))
beforeEach(() => api.database.query('delete from checks'))

const add = (check: Parameters<typeof addCheck>[2] = {}, who = tenant) => addCheck(api.context, who, check)
async function list(query = '', who = visitor): Promise<string> {
  const { status, text } = await who.get(`/checks${query}`)
  expect(status, text).toBe(200)
  return text
}
/** The names in the order of the rows. */
const namesIn = (text: string) =>
  Array.from(text.matchAll(/<a href="\/checks\/[0-9a-f-]{36}"><bdi>(.*?)<\/bdi>/g), ([, name]) => name)
/** Plain text of the row of a check. */
function rowOf(text: string, { id }: Pick<CheckRecord, 'id'>): string {
  const row = text
    .split('<tr role="row" ')
    .find((part) => part.startsWith(`id="check-${id}"`))
    ?.split('</tr>')[0]
  expect(row).toBeDefined()
  return row!
    .replace(/^[^>]*>/, '')
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()
}
const titleOf = (text: string) => /<title>(.*?)<\/title>/.exec(text)![1]

describe('the list of checks', () => {
  it('begins with what is down and late, and says so in its title, with the counts of each status', async () => {
    const checks: Record<string, CheckRecord> = {}
    for (const name of ['paused', 'up', 'new', 'late', 'down']) checks[name] = await add({ name })
    await api.ping(checks.late!.publicId)
    api.moveClock(HOUR)
    await api.ping(checks.up!.publicId)
    await api.ping(checks.down!.publicId, { type: 'fail', exitCode: 3 })
    await pauseCheck(api.context, tenant, checks.paused!.id)

    const text = await list()
    expect(namesIn(text)).toEqual(['down', 'late', 'new', 'up', 'paused'])
    expect(titleOf(text)).toBe('1 down - Heartbeat Operator')
    expect(text).toContain('1 check is down, and 1 is late.')
    for (const status of ['down', 'late', 'new', 'up', 'paused'])
      expect(text).toMatch(
        new RegExp(`<a href="/checks\\?status=${status}"><span class="status-${status}">.*</span> <b>1</b>`),
      )
    expect(text).toContain('data-live="list"')
    const only = await list('?status=late')
    expect(namesIn(only)).toEqual(['late'])
    expect(titleOf(only)).toBe('1 down - Heartbeat Operator')
    expect(only).toContain('aria-current="true"')
  })

  it('has for the script the time when its next check becomes late, and so has the page of a check', async () => {
    const nextIn = (text: string) => /<main [^>]*data-next="([^"]*)"/.exec(text)?.[1] ?? null
    const pageOf = async ({ id }: CheckRecord) => (await visitor.get(`/checks/${id}`)).text
    const [first, second] = [await add({ name: 'First' }), await add({ name: 'Second' })]
    expect([nextIn(await list()), nextIn(await pageOf(first))]).toEqual([null, null])
    await api.ping(first.publicId)
    api.moveClock(HOUR / 2)
    await api.ping(second.publicId)
    const { rows } = await api.database.query<{ at: number }>(
      'select expected_at as at from check_states order by check_key',
    )
    const [firstAt, secondAt] = rows.map(({ at }) => new Date(at).toISOString())
    expect([nextIn(await list()), nextIn(await list('?q=Second'))]).toEqual([firstAt, secondAt])
    expect([nextIn(await pageOf(first)), nextIn(await pageOf(second))]).toEqual([firstAt, secondAt])
    api.moveClock(HOUR / 2)
    const since = { 'x-refresh': new Date(api.context.clock.now()).toISOString() }
    const readAgain = (await visitor.get('/checks', since)).text
    expect([nextIn(readAgain), nextIn(await pageOf(first))]).toEqual([secondAt, null])
  })

  it('shows of each check its status with the reason, its place, schedule, last and next ping, and last runs', async () => {
    const nightly = await add({ name: 'Nightly', spec: { schedule: '0 2 * * *', timeZone: 'Europe/Berlin' } })
    const hourly = await add({ name: 'Hourly' })
    const running = await add({ name: 'Running', spec: { maxRuntimeSeconds: 600 } })
    await api.ping(nightly.publicId, { type: 'success', durationMs: 1_500 })
    await api.ping(nightly.publicId, { type: 'fail', exitCode: 1, durationMs: 90_000 })
    await api.ping(hourly.publicId)
    await api.ping(running.publicId)
    await api.ping(running.publicId, { type: 'start' })
    await api.database.query(
      "update checks set managed_by = 'kubernetes', kubernetes_cluster = 'default', kubernetes_namespace = 'payments', kubernetes_name = 'nightly' where id = $1",
      [nightly.id],
    )
    const text = await list()
    expect(rowOf(text, nightly)).toBe(
      `Down failed just now Nightly ${await projectName()} payments At 02:00 every day, Berlin Last ping just now Next expected – Last 2 runs: 1 succeeded, 1 failed. Newest failures: failed (the last run). Durations: 1.5 s to 1 min 30 s, the last one 1 min 30 s.`,
    )
    expect(rowOf(text, hourly)).toContain('Up first success just now Hourly')
    expect(rowOf(text, hourly)).toContain(
      'API Every hour Last ping just now Next expected in 59 minutes Last run: 1 succeeded.',
    )
    expect(rowOf(text, running)).toContain('Up Running')
    expect(rowOf(text, running)).toContain('Next expected to end in 9 minutes')
    expect(text).toMatch(/<time datetime="[^"]+Z" title="[\d-]+ [\d:]+ UTC">just now<\/time>/)
    const other = 'edge'
    await api.database.query('update checks set kubernetes_cluster = $1 where id = $2', [other, nightly.id])
    expect(rowOf(await list(), nightly)).toContain('edge/payments')
    const fresh = await add({ name: 'Fresh' })
    expect(rowOf(await list(), fresh)).toMatch(
      /^New created .*, no result yet Fresh .* Last ping never Next expected after its first ping No runs yet$/,
    )
  })

  it('shows the first tags of a check, and how many more it has', async () => {
    const check = await add({ tags: ['team:payments', 'b', 'c', 'd', 'e', 'f', 'g'] })
    expect(rowOf(await list(), check)).toContain('Nightly backup team:payments b c d e +2')
    await api.database.query("update checks set tags = '{one}'")
    expect(rowOf(await list(), check)).toMatch(/Nightly backup one (?!\+)/)
  })

  it('says that all is well', async () => {
    const check = await add()
    expect(await list()).toContain('No job has reported yet.')
    await api.ping(check.publicId)
    const text = await list()
    expect(text).toContain('All is well.')
    expect(titleOf(text)).toBe('Checks - Heartbeat Operator')
    const iconOf = (of: string) => /id="favicon" href="([^"]+)"/.exec(of)![1]
    await api.ping(check.publicId, { type: 'fail' })
    expect(iconOf(await list())).not.toBe(iconOf(text))
    expect(iconOf(text)).toMatch(/^data:image\/svg\+xml,/)
    await pauseCheck(api.context, tenant, check.id)
    expect(await list()).toContain('All of them are paused.')
  })

  it('holds the checks of all projects of the organization, and of no other', async () => {
    const other = await addProject(api, tenant, 'other')
    const foreign = await addTenant(api, 'foreign')
    await add({ name: 'mine' })
    await add({ name: 'second', projectId: other })
    const strange = await add({ name: 'strange' }, foreign)
    expect(namesIn(await list('?sort=name'))).toEqual(['mine', 'second'])
    for (const project of ['other', other]) expect(namesIn(await list(`?project=${project}`))).toEqual(['second'])
    expect(await list('?project=other')).toContain('<option value="other" selected>')
    for (const project of ['foreign', foreign.project, 'no-such', '%00', "'"]) {
      const { status, text } = await visitor.get(`/checks?project=${project}`)
      expect(status).toBe(project === '%00' ? 422 : 404)
      expect(text).toContain('href="/checks"')
      expect(text).not.toContain(strange.id)
    }
    await api.database.query("delete from checks; delete from projects where slug = 'other'")
  })

  it('is the same for scope read, without ways to change or ping anything', async () => {
    const check = await add()
    const reader = await visit(api, 'read')
    const text = await list('', reader)
    expect(namesIn(text)).toEqual([check.name])
    expect(text).not.toContain('/checks/new')
    expect(text).not.toContain(check.publicId)
    // The filter submits itself; its button shows to browsers without scripts alone.
    expect(text.slice(text.indexOf('<main'))).not.toContain('<button')
    expect(text).toContain('aria-label="Filter" data-submit>')
    expect(text).toContain('<input type="submit" class="secondary scriptless-only" value="Show">')
    const writer = await list('', await visit(api, 'write'))
    expect(writer).toContain('href="/checks/new"')
    expect(writer).toContain('<input type="submit" class="secondary" value="Show">')
    expect(writer).not.toContain('data-submit')
    expect(writer).not.toContain(check.publicId)
  })
})

describe('its filters', () => {
  it('are a plain form that keeps what was asked', async () => {
    await add({ name: 'Ledger "A"' })
    await add({ name: 'Stock' })
    const text = await list('?q=LEDGER+%22&sort=-name&status=new&done=no-such&project=')
    expect(namesIn(text)).toEqual(['Ledger &quot;A&quot;'])
    expect(text).toContain('<form class="filters" method="get" action="/checks"')
    expect(text).toContain('name="q" value="LEDGER &quot;"')
    expect(text).toContain('<option value="-name" selected>')
    expect(text).toContain('<input type="hidden" name="status" value="new">')
    expect(text).toContain('<a href="/checks?sort=-name">Clear the filter</a>')
    expect(text).toContain('<a href="/checks?status=new&amp;q=LEDGER+%22&amp;sort=name">Name')
    expect(text).toContain('aria-sort="descending"')
  })

  it.each(['name', '-name', 'status', '-status', 'last_ping', '-last_ping', 'due', '-due'])(
    'sort by %s',
    async (sort) => {
      const [first, second] = [await add({ name: 'a' }), await add({ name: 'b' })]
      await api.ping(first.publicId)
      await api.ping(second.publicId, sort.endsWith('status') ? { type: 'fail' } : {})
      const expected = ['a', 'b']
      const isTurned = sort.startsWith('-') !== sort.endsWith('status')
      expect(namesIn(await list(`?sort=${sort}`))).toEqual(isTurned ? expected.reverse() : expected)
    },
  )

  it('show the checks whose last run ended with a warning, which have a label beside their status', async () => {
    const [warned, up] = [await add({ name: 'Warned' }), await add({ name: 'Up' })]
    await api.ping(warned.publicId, { type: 'warn', exitCode: null })
    await api.ping(up.publicId)
    const all = await list()
    expect([rowOf(all, warned), rowOf(all, up)].map((row) => row.includes('Up Warning'))).toEqual([true, false])
    expect(all).toContain('<span class="warned">Warning</span>')
    const only = await list('?outcome=warn&sort=name')
    expect(namesIn(only)).toEqual(['Warned'])
    expect(only).toContain('<option value="warn" selected>Last run ended with a warning</option>')
    expect(only).toContain('<a href="/checks?sort=name">Clear the filter</a>')
    expect(only).toContain('<a href="/checks?outcome=warn&amp;sort=name&amp;status=up">')
    const none = await list('?outcome=fail')
    expect(namesIn(none)).toEqual([])
    expect(none).toContain('No check matches the filter.')
  })

  it('offer up to 100 projects, and take a slug where there are more', async () => {
    await api.database.query(
      "insert into projects (id, organization_id, name, slug) select gen_random_uuid(), $1, 'P ' || n, 'many-' || n from generate_series(1, 98) n",
      [api.organizationId],
    )
    const extra = await addProject(api, tenant, 'many-99')
    const { rows } = await api.database.query('select from projects where organization_id = $1', [api.organizationId])
    for (let count = rows.length; count < 100; count += 1) await addProject(api, tenant, `many-${count + 100}`)
    await add({ name: 'there', projectId: extra })
    expect(await list('?project=many-99')).toContain('<option value="many-99" selected>')
    await addProject(api, tenant, 'many-0')
    const text = await list(`?project=${extra}`)
    expect(text).toContain('<input type="text" name="project" value="many-99"')
    expect(namesIn(text)).toEqual(['there'])
    await api.database.query("delete from checks; delete from projects where slug like 'many-%'")
  })

  it('that match nothing lead back', async () => {
    await add()
    const text = await list('?q=no-such&sort=due')
    expect(namesIn(text)).toEqual([])
    expect(text).toContain('No check matches the filter.')
    expect(text).toContain('href="/checks?sort=due">Clear the filter</a>')
    expect(await list('?status=down')).toContain('No check matches the filter.')
  })

  it.each([
    ['status=gone', 'Status must be one of new, up, late, down, paused.'],
    ['outcome=log', 'Outcome must be one of success, warn, fail.'],
    ['sort=slug', 'Sort must be one of status, -status, name, -name, last_ping, -last_ping, due, -due.'],
    [`q=${'x'.repeat(101)}`, 'Q must be text of at most 100 characters'],
    ['q=%01', 'Q must be text of at most 100 characters'],
    ['cursor=x', 'The address of this page is incomplete or changed: open the list from its start.'],
  ])('reject %s', async (query, message) => {
    const { status, text } = await visitor.get(`/checks?${query}`)
    expect(status).toBe(422)
    expect(text).toContain(message)
    expect(text).toContain('href="/checks"')
  })
})

describe('a long list', () => {
  it('has pages of 100, whose links keep filter and order', async () => {
    await api.database.query(
      `with made as (
          insert into checks (id, public_id, project_id, name, slug, created_at)
          select gen_random_uuid(), gen_random_uuid(), $1, 'check ' || lpad(n::text, 3, '0'), 'check-' || n, now() from generate_series(1, 250) n
          returning key)
        insert into check_states (check_key, period_seconds, grace_seconds, status, since, stamped_at) select key, 60, 60, 0, now(), now() from made`,
      [api.project],
    )
    const pages: string[] = []
    let href: string | undefined = '/checks?q=check&sort=-name'
    while (href !== undefined && pages.length < 5) {
      const { text } = await visitor.get(href)
      pages.push(text)
      const [, next] = /<a href="([^"]+)" rel="next">Next 100<\/a>/.exec(text) ?? []
      href = next?.replaceAll('&amp;', '&')
      if (href !== undefined) expect(href).toMatch(/^\/checks\?q=check&sort=-name&cursor=/)
    }
    expect(pages.map((page) => namesIn(page).length)).toEqual([100, 100, 50])
    expect(namesIn(pages.join(''))).toEqual(
      Array.from({ length: 250 }, (_, index) => `check ${String(250 - index).padStart(3, '0')}`),
    )
    expect(pages[0]).toContain('100 of 250 checks')
    expect(pages[0]).not.toContain('First page')
    expect(pages[1]).toContain('<a href="/checks?q=check&amp;sort=-name">First page</a>')
    const last = await visitor.get('/checks?sort=-name')
    const next = /href="([^"]+)" rel="next"/.exec(last.text)![1]!.replaceAll('&amp;', '&')
    await api.database.query('delete from checks where name < $1', ['check 151'])
    expect((await visitor.get(next)).text).toContain('There are no more checks here.')
  })
})

describe('without a check', () => {
  it('the page says how to create the first one, by form and by kubectl', async () => {
    const text = await list()
    expect(text).toContain('No checks yet')
    expect(text).toMatch(/<a class="button" href="\/checks\/new">/)
    expect(text).toContain('kubectl apply -f -')
    const [, manifest] = /&lt;&lt;&#39;EOF&#39;\n([\s\S]*?)\nEOF/.exec(text)!
    const { kind, spec } = parse(manifest!.replaceAll('&quot;', '"'))
    expect(kind).toBe('HeartbeatCheck')
    expect(Spec.safeParse(spec)).toMatchObject({ success: true })
  })

  it('the page tells scope read who creates one', async () => {
    const text = await list('', await visit(api, 'read'))
    expect(text).toContain('A user with the scope write creates them.')
    expect(text).not.toContain('/checks/new')
    expect(text).not.toContain('data-copy')
  })
})

describe('names that attack', () => {
  const HOSTILE = [
    '<script>alert(1)</script>',
    `"><img src=x onerror='alert(1)'>`,
    '\u202egnp.exe',
    '&lt;b&gt;',
    'مهمة النسخ الاحتياطي',
    `${'𝔘'.repeat(99)}<`,
    '{{7*7}} #{7*7}',
  ]

  it('stay text, of checks, projects and namespaces', async () => {
    await api.database.query(
      "insert into projects (id, organization_id, name, slug) values (gen_random_uuid(), $1, '<script>p</script>', 'hostile')",
      [api.organizationId],
    )
    const checks = await Promise.all(HOSTILE.map((name) => add({ name })))
    await api.database.query(
      `update checks set kubernetes_cluster = 'default', managed_by = 'kubernetes', kubernetes_namespace = '<script>n</script>', kubernetes_name = key::text;
      update checks set project_id = (select id from projects where slug = 'hostile')`,
    )
    const text = await list(`?q=${encodeURIComponent('')}`)
    expect(namesIn(text).sort()).toEqual(HOSTILE.map(escapeHtml).sort())
    // The others are text: each script is a file of ours.
    expect(text.match(/<script/g)).toEqual(text.match(/<script(?=[^>]* src="\/assets\/)/g))
    expect(text.replace(/<bdi>.*?<\/bdi>/g, '')).not.toMatch(/<img|style=| on\w+=/)
    expect(text).toContain('<bdi>&lt;script&gt;n&lt;/script&gt;</bdi>')
    expect(text).toContain('<bdi>&lt;script&gt;p&lt;/script&gt;</bdi>')
    for (const name of HOSTILE) {
      const found = await list(`?q=${encodeURIComponent(name)}`)
      expect(namesIn(found)).toEqual([escapeHtml(name)])
    }
    expect(checks).toHaveLength(HOSTILE.length)
  })
})

async function projectName(): Promise<string> {
  const { rows } = await api.database.query<{ name: string }>('select name from projects where id = $1', [api.project])
  return rows[0]!.name
}
