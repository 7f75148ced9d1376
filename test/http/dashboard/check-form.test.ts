import { beforeEach, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { declareCheck } from '../../../src/checks/declare/declare-check.ts'
import { NO_SPEC } from '../../../src/checks/read-spec.ts'
import { type CheckTexts, NO_TEXTS } from '../../../src/domain/check.ts'
import { resolveProject } from '../../../src/tenancy/namespace-projects.ts'
import { decodeHtml, readFields, readForm } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(startTestApi)
const visitor = use(() => visit(api, 'write'))

/** Fills in the form of a new check as a browser does, and follows to the created check. */
async function create(fields: Record<string, string>) {
  const form = readForm((await visitor.get('/checks/new')).text, '/checks/new')
  const sent = await visitor.post('/checks/new', { ...form, ...fields })
  const [, id] = /^\/checks\/([0-9a-f-]{36})\/how\?done=check-created$/.exec(sent.location ?? '') ?? []
  if (id === undefined) throw new Error(`the check was not created: ${sent.status} ${sent.location}\n${sent.text}`)
  return await stored(id)
}

const editForm = async (id: string) => readForm((await visitor.get(`/checks/${id}/edit`)).text, `/checks/${id}/edit`)
async function edit(id: string, fields: Record<string, string>) {
  const form = await editForm(id)
  return visitor.post(`/checks/${id}/edit`, { ...form, ...fields })
}

const stored = async (id: string) => (await api.client.get(`/checks/${id}`)).body

/** The text beside a field. */
function faultOf(page: string, field: string): string | null {
  const [, fault] = new RegExp(`<small id="${field}-fault" class="fault">([^<]*)</small>`).exec(page) ?? []
  return fault === undefined ? null : decodeHtml(fault)
}

describe('the form of a new check', () => {
  it('has a field for each part of a check, with its label and its meaning', async () => {
    const { status, text } = await visitor.get('/checks/new')
    expect(status).toBe(200)
    for (const [name, label] of [
      ['name', 'Name'],
      ['slug', 'Slug'],
      ['description', 'Description'],
      ['schedule', 'Schedule'],
      ['time_zone', 'Time zone'],
      ['period_seconds', 'Every'],
      ['grace_seconds', 'Grace'],
      ['tags', 'Tags'],
      ['labels', 'Labels'],
      ['max_runtime_seconds', 'Maximum run time'],
      ['warn_exit_codes', 'Exit codes of a warning'],
      ['failures_before_down', 'Failures before it is down'],
      ['misses_before_down', 'Misses before it is down'],
      ['remind_every_seconds', 'Remind every'],
      ['remind_on_each_run', 'Remind of each run'],
    ]) {
      expect(text).toContain(`<label for="${name}">${label}</label>`)
      expect(text).toMatch(new RegExp(`id="${name}" name="${name}" aria-describedby="${name}-meaning"`))
      expect(text).toMatch(new RegExp(`<small id="${name}-meaning">[^<]{10,}</small>`))
    }
    expect(text).toContain('<option value="Europe/Berlin">')
    expect(readForm(text, '/checks/new')).toMatchObject({ time_zone: 'UTC', name: '' })
  })

  it('lets the script put in the zone of the browser, until the user has sent the form', async () => {
    expect((await visitor.get('/checks/new')).text).toMatch(/id="time_zone"[^>]* data-time-zone/)
    const { id } = await create({ name: 'Zone' })
    for (const { text } of [await visitor.post('/checks/new', { name: '' }), await visitor.get(`/checks/${id}/edit`)])
      expect(text).not.toContain('data-time-zone')
  })

  it('creates a check of a name alone, with the defaults of the API, and leads to how it pings', async () => {
    const { name, ...made } = await create({ name: 'Nightly backup' })
    const other = await api.addCheck({ name: 'Other' })
    expect(name).toBe('Nightly backup')
    const { grace_seconds, period_seconds, schedule, time_zone, description, tags, labels, max_runtime_seconds } = other
    expect(made).toMatchObject({ grace_seconds, period_seconds, schedule, time_zone, description, tags, labels })
    expect(made).toMatchObject({ slug: 'nightly-backup', max_runtime_seconds, status: 'new', due_at: null })
    const how = await visitor.get(`/checks/${made.id}/how?done=check-created`)
    expect([how.status, how.text.includes('The check is created.')]).toEqual([200, true])
  })

  it('creates a check of a name alone that was posted without any other field', async () => {
    const { location } = await visitor.post('/checks/new', { name: 'Only a name' })
    expect(location).toMatch(/^\/checks\/[0-9a-f-]{36}\/how/)
  })

  it.each<[string, Record<string, string>, Record<string, unknown>]>([
    ['slug', { slug: 'own-slug_1' }, { slug: 'own-slug_1' }],
    ['description', { description: '\nAsk #data\r\n  indented' }, { description: '\nAsk #data\n  indented' }],
    ['tags', { tags: 'team:payments,  nightly' }, { tags: ['team:payments', 'nightly'] }],
    [
      'labels',
      { labels: ' team = shop\r\n\r\nnightly\nexample.com/a=1\n' },
      { labels: { team: 'shop', nightly: '', 'example.com/a': '1' } },
    ],
    ['labels as kubectl shows them', { labels: 'a=1,b=2, c=3' }, { labels: { a: '1', b: '2', c: '3' } }],
    [
      'schedule',
      { schedule: ' 30 6 * * MON-FRI ', time_zone: 'Europe/Berlin' },
      { schedule: '30 6 * * MON-FRI', time_zone: 'Europe/Berlin', period_seconds: null },
    ],
    ['schedule without a zone', { schedule: '@daily', time_zone: '' }, { schedule: '@daily', time_zone: 'UTC' }],
    ['every', { period_seconds: '15 min' }, { period_seconds: 900, schedule: null, time_zone: null }],
    ['every, in seconds', { period_seconds: '90' }, { period_seconds: 90 }],
    ['grace', { grace_seconds: '1h30m' }, { grace_seconds: 5_400 }],
    ['maximum run time', { max_runtime_seconds: '2 h' }, { max_runtime_seconds: 7_200 }],
    ['exit codes of a warning', { warn_exit_codes: ' 24, 3 ' }, { warn_exit_codes: [3, 24] }],
    ['failures before it is down', { failures_before_down: ' 3 ' }, { failures_before_down: 3, misses_before_down: 1 }],
    ['misses before it is down', { misses_before_down: '2' }, { failures_before_down: 1, misses_before_down: 2 }],
    ['reminders', { remind_every_seconds: '1 day' }, { remind_every_seconds: 86_400, remind_on_each_run: false }],
    ['reminders of runs', { remind_on_each_run: 'on' }, { remind_every_seconds: null, remind_on_each_run: true }],
    ['armed', { armed: 'on' }, { due_at: expect.any(String) }],
  ])('takes %s', async (what, fields, expected) =>
    expect(await create({ name: `With ${what}`, ...fields })).toMatchObject(expected),
  )

  it('creates it in the project that the address names', async () => {
    const { body: project } = await api.client.post('/projects', { name: 'Payments <&>' })
    const { text } = await visitor.get('/checks/new?project=payments')
    expect(text).toContain('>Payments &lt;&amp;&gt;</option>')
    const form = readForm(text, '/checks/new')
    expect(form.project_id).toBe(project.id)
    const { location } = await visitor.post('/checks/new', { ...form, name: 'In payments' })
    const [id] = /[0-9a-f-]{36}/.exec(location!)!
    expect((await stored(id)).project_id).toBe(project.id)
  })

  it.each<[string, Record<string, string>, string]>([
    ['name', { name: ' ' }, 'Name is required.'],
    [
      'slug',
      { slug: 'Not a slug' },
      'Slug must be 1 to 100 characters of a-z, 0-9, - and _, and begin and end with a letter or digit.',
    ],
    [
      'description',
      { description: 'x'.repeat(4_097) },
      'Description must be text of at most 4096 characters, without control characters other than line breaks and tabs.',
    ],
    ['tags', { tags: 'a%b' }, 'Each tag must be a tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -.'],
    ['labels', { labels: 'a=1\nb=2\na=3' }, 'Labels must not have a twice.'],
    [
      'labels',
      { labels: '__proto__=a' },
      'The label __proto__ must have a name of up to 63 letters, digits, -, _ and . that begins and ends with a letter or digit, alone or after a prefix such as example.com/.',
    ],
    [
      'schedule',
      { schedule: '61 * * * *' },
      'Schedule has "61" as minute: 61 is too large; give values from 0 to 59, such as 0, 0,30 or */15.',
    ],
    [
      'schedule',
      { schedule: '0 2 * * *', period_seconds: '1h' },
      'Schedule must be left out beside Every: give one of them.',
    ],
    [
      'time_zone',
      { schedule: '0 2 * * *', time_zone: 'Berlin' },
      'Time zone must be an IANA time zone like Europe/Berlin, not "Berlin".',
    ],
    ['period_seconds', { period_seconds: 'often' }, 'Every must be a length of time such as 15 min or 1h30m.'],
    ['grace_seconds', { grace_seconds: '-1' }, 'Grace must be a length of time such as 15 min or 1h30m.'],
    ['max_runtime_seconds', { max_runtime_seconds: '0' }, 'Maximum run time must be from 1 second to 365 days.'],
    ...['failures', 'misses'].flatMap((what) =>
      ['0', '101', '2.5', 'two'].map((count): [string, Record<string, string>, string] => [
        `${what}_before_down`,
        { [`${what}_before_down`]: count },
        `${what === 'misses' ? 'Misses' : 'Failures'} before it is down must be an integer from 1 to 100.`,
      ]),
    ),
    ['remind_every_seconds', { remind_every_seconds: '4 min' }, 'Remind every must be from 5 minutes to 30 days.'],
    [
      'remind_every_seconds',
      { remind_every_seconds: 'daily' },
      'Remind every must be a length of time such as 15 min or 1h30m.',
    ],
    ...['3 x', '0', '256', '3 3', '3;24'].map((warn_exit_codes): [string, Record<string, string>, string] => [
      'warn_exit_codes',
      { warn_exit_codes },
      'Exit codes of a warning must be a list of at most 20 different numbers from 1 to 255.',
    ]),
    [
      'project_id',
      { project_id: '00000000-0000-4000-8000-000000000000' },
      'Project does not exist any more: choose another one.',
    ],
  ])('rejects a fault of %s beside the field, with all input: %j', async (field, fields, expected) => {
    const given = { ...readForm((await visitor.get('/checks/new')).text, '/checks/new') }
    const filled = { ...given, name: 'Faulty', description: 'kept', tags: 'kept', armed: 'on', ...fields }
    const { status, text } = await visitor.post('/checks/new', filled)
    expect([status, faultOf(text, field)]).toEqual([422, expected])
    expect(text).toContain(`<a href="#${field}">`)
    expect(text).toMatch(
      new RegExp(`name="${field}"[^>]*aria-describedby="${field}-fault ${field}-meaning" aria-invalid="true"`),
    )
    const kept = readForm(text, '/checks/new')
    if (field !== 'project_id') expect(kept).toEqual(filled)
  })

  it('reports the faults of several fields together, of the form and of the API', async () => {
    const fields = { name: '', period_seconds: 'soon', slug: '-', schedule: '61 * * * *' }
    const { status, text } = await visitor.post('/checks/new', fields)
    expect(status).toBe(422)
    expect(Object.keys(fields).filter((field) => faultOf(text, field) === null)).toEqual([])
  })

  it('rejects a slug that is taken, beside the field', async () => {
    await create({ name: 'First', slug: 'taken' })
    const { status, text } = await visitor.post('/checks/new', { name: 'Second', slug: 'taken' })
    expect(status).toBe(422)
    expect(faultOf(text, 'slug')).toBe('Another check of the project has the slug "taken": choose another.')
  })

  it('gives a slug that two users want at the same moment to one of them', async () => {
    const both = ['One', 'Two'].map((name) => visitor.post('/checks/new', { name, slug: 'wanted-by-two' }))
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([303, 422])
  })

  it('takes nothing that the API would not take', async () => {
    const { text } = await visitor.post('/checks/new', { name: 'NUL \0' })
    expect(text).toContain('NUL')
    const { body } = await api.client.get(`/checks?project_id=${api.project}&q=NUL`)
    expect(body.checks).toEqual([])
  })
})

const HOSTILE = [
  '<script>alert(1)</script>',
  `"'><img src=x onerror=alert(1)>`,
  '&lt;b&gt; &amp;amp;',
  '\u202egnp.exe',
  '💾'.repeat(100),
  '夜間バックアップ',
  'נסיון مرحبا',
]

describe('hostile text', () => {
  it.each(HOSTILE)('stays text in each field: %s', async (text) => {
    const description = `${text}\n</textarea><script>alert(1)</script>`
    const { id } = await create({ name: text, description, slug: '' })
    const { updated_at, ...made } = await stored(id)
    expect(made).toMatchObject({ name: text, description })
    for (const path of [`/checks/${id}/edit`, `/checks/${id}/how`]) {
      const shown = (await visitor.get(path)).text
      expect(shown).not.toMatch(/<script>alert|<img|<b>/)
      expect(decodeHtml(shown)).toContain(text)
    }
    const form = await editForm(id)
    expect(form).toMatchObject({ name: text, description })
    // Unchanged, and saved unchanged.
    await edit(id, {})
    expect((await stored(id)).updated_at).toBe(updated_at)
  })

  it.each(HOSTILE)('stays text in each field at fault: %s', async (text) => {
    const texts = ['name', 'slug', 'description', 'schedule', 'time_zone', 'period_seconds', 'grace_seconds']
    const fields = [...texts, 'tags', 'labels']
    const filled = Object.fromEntries(fields.map((field) => [field, text]))
    const { status, text: shown } = await visitor.post('/checks/new', { ...filled, name: `${text}${'x'.repeat(100)}` })
    expect(status).toBe(422)
    expect(shown).not.toMatch(/<script>alert|<img|<b>/)
    expect(readForm(shown, '/checks/new')).toMatchObject({ ...filled, name: `${text}${'x'.repeat(100)}` })
    const query = new URLSearchParams({ schedule: text, time_zone: text })
    expect((await visitor.get(`/checks/preview?${query}`)).text).not.toMatch(/<script>alert|<img|<b>/)
  })
})

describe('the preview of a schedule', () => {
  const preview = async (query: Record<string, string>) =>
    (await visitor.get(`/checks/preview?${new URLSearchParams(query)}`)).text

  it('has its words and its next five times in the zone', async () => {
    const text = await preview({ schedule: '30 6 * * *', time_zone: 'Asia/Kathmandu' })
    expect(text).toContain('At 06:30 every day, Kathmandu')
    expect(text.match(/<li>\w{3}, \d{1,2} \w{3,4} \d{4}, 06:30 GMT\+5:45<\/li>/g)).toHaveLength(5)
    expect(text).not.toMatch(/<html|<main/)
  })

  it('has the words of a period, and when the check goes down', async () => {
    const text = await preview({ period_seconds: '15 min', grace_seconds: '5 min' })
    expect(text).toContain('Every 15 minutes')
    expect(text).toContain('no success arrives for 20 minutes')
    expect(await preview({})).toContain('Every day')
  })

  it.each([
    [{ schedule: '61 * * * *' }, /class="fault">Schedule has &quot;61&quot; as minute/],
    [{ schedule: '0 2 * * *', time_zone: 'Berlin' }, /class="fault">Time zone must be an IANA time zone/],
    [{ schedule: '0 0 31 2 *' }, /names no real date/],
    [{ period_seconds: 'soon' }, /class="fault">Every must be a length of time/],
  ])('says what is wrong: %j', async (query, expected) => expect(await preview(query)).toMatch(expected))

  it('is part of the page after a submit, without a script', async () => {
    const { text } = await visitor.post('/checks/new', { name: '', schedule: '0 2 * * *', time_zone: 'Europe/Berlin' })
    const [, shown] = /<div id="preview"[^>]*>([\s\S]*?)<\/div>/.exec(text) ?? []
    expect(shown).toContain('At 02:00 every day, Berlin')
  })
})

describe('the form of a change', () => {
  it('shows the stored values, and saves what the user changed', async () => {
    const fields = {
      description: 'Ask #data',
      tags: 'a b',
      labels: 'a=1\nb=',
      schedule: '0 2 * * *',
      time_zone: 'Europe/Berlin',
    }
    const { id, slug } = await create({ name: 'Before', ...fields, grace_seconds: '90 min' })
    const { text } = await visitor.get(`/checks/${id}/edit`)
    expect(readForm(text, `/checks/${id}/edit`)).toMatchObject({
      name: 'Before',
      slug,
      ...fields,
      period_seconds: '',
      grace_seconds: '1 hour 30 minutes',
    })
    expect(text).toContain('At 02:00 every day, Berlin')
    const { status, location } = await edit(id, {
      name: 'After',
      tags: '',
      labels: 'b=2',
      max_runtime_seconds: '1h',
      warn_exit_codes: '3',
      failures_before_down: '3',
      misses_before_down: '2',
      remind_every_seconds: '6 h',
      remind_on_each_run: 'on',
      description: '',
    })
    expect([status, location]).toEqual([303, `/checks/${id}?done=check-saved`])
    expect(await stored(id)).toMatchObject({
      name: 'After',
      tags: [],
      labels: { b: '2' },
      description: null,
      max_runtime_seconds: 3_600,
      warn_exit_codes: [3],
      failures_before_down: 3,
      misses_before_down: 2,
      remind_every_seconds: 21_600,
      remind_on_each_run: true,
      schedule: '0 2 * * *',
      time_zone: 'Europe/Berlin',
      grace_seconds: 5_400,
    })
    expect(await editForm(id)).toMatchObject({
      warn_exit_codes: '3',
      failures_before_down: '3',
      misses_before_down: '2',
      remind_every_seconds: '6 hours',
      remind_on_each_run: 'on',
    })
    await edit(id, { max_runtime_seconds: '', warn_exit_codes: '' })
    expect(await stored(id)).toMatchObject({ max_runtime_seconds: null, warn_exit_codes: [], failures_before_down: 3 })
    await edit(id, {
      failures_before_down: '',
      misses_before_down: '',
      remind_every_seconds: '',
      remind_on_each_run: '',
    })
    expect(await stored(id)).toMatchObject({
      failures_before_down: 1,
      misses_before_down: 1,
      remind_every_seconds: null,
      remind_on_each_run: false,
    })
    expect(await editForm(id)).toMatchObject({ failures_before_down: '', misses_before_down: '' })
  })

  it('changes a period into a schedule and back', async () => {
    const { id } = await create({ name: 'Both ways', period_seconds: '1h' })
    const saved = async (fields: Record<string, string>) => {
      expect((await edit(id, fields)).status).toBe(303)
      const { period_seconds, schedule, time_zone } = await stored(id)
      return { period_seconds, schedule, time_zone }
    }
    expect(await saved({ period_seconds: '', schedule: '0 2 * * *', time_zone: 'Asia/Tokyo' })).toEqual({
      period_seconds: null,
      schedule: '0 2 * * *',
      time_zone: 'Asia/Tokyo',
    })
    expect(await saved({ time_zone: 'UTC' })).toMatchObject({ schedule: '0 2 * * *', time_zone: 'UTC' })
    expect(await saved({ period_seconds: '2h', schedule: '' })).toEqual({
      period_seconds: 7_200,
      schedule: null,
      time_zone: null,
    })
    // The new schedule replaces the period that the user left in its field.
    expect(await saved({ schedule: '@daily' })).toMatchObject({ period_seconds: null, schedule: '@daily' })
  })

  it.each<[string, Record<string, string>, string]>([
    ['slug', { slug: '' }, 'Slug must be 1 to 100'],
    ['grace_seconds', { grace_seconds: '' }, 'Grace must be a length of time'],
    ['period_seconds', { period_seconds: '' }, 'Every or Schedule must be given.'],
    ['slug', { slug: 'taken-by-another' }, 'Another check of the project has the slug'],
  ])('rejects a fault of %s beside the field, and saves nothing: %j', async (field, fields, expected) => {
    await api.addCheck({ name: 'Taken', slug: 'taken-by-another' })
    const { id, updated_at } = await create({ name: 'Unchanged', period_seconds: '1h' })
    const { status, text } = await edit(id, { description: 'kept', ...fields })
    expect([status, faultOf(text, field)]).toEqual([422, expect.stringContaining(expected)])
    expect(readForm(text, `/checks/${id}/edit`)).toMatchObject({ description: 'kept', ...fields })
    expect((await stored(id)).updated_at).toBe(updated_at)
    // The corrected form saves all of it.
    const again = await visitor.post(`/checks/${id}/edit`, {
      ...readForm(text, `/checks/${id}/edit`),
      name: 'Corrected',
      slug: `corrected-${id}`,
      period_seconds: '2h',
      schedule: '',
      grace_seconds: '1h',
    })
    expect(again.status).toBe(303)
    expect(await stored(id)).toMatchObject({ description: 'kept', period_seconds: 7_200 })
    await api.client.delete(`/checks/${(await findBySlug('taken-by-another')).id}`)
  })

  const findBySlug = async (slug: string) =>
    (await api.client.get(`/checks?project_id=${api.project}&slug=${slug}`)).body.checks[0]

  it('keeps what another user changed meanwhile in other fields; of the same field the later one counts', async () => {
    const { id } = await create({ name: 'Shared', period_seconds: '1h' })
    const first = await editForm(id)
    const second = { ...first }
    await visitor.post(`/checks/${id}/edit`, { ...first, name: 'By the first', grace_seconds: '5 min' })
    await visitor.post(`/checks/${id}/edit`, { ...second, description: 'By the second', grace_seconds: '6 min' })
    expect(await stored(id)).toMatchObject({
      name: 'By the first',
      description: 'By the second',
      grace_seconds: 360,
      period_seconds: 3_600,
    })
  })

  it('does not send a description on that the API has stored with other line breaks', async () => {
    const description = 'one\r\ntwo\rthree\n'
    const { id } = await api.addCheck({ name: 'Breaks', description })
    const form = await editForm(id)
    // As a browser does it.
    const sent = { ...form, description: form.description!.replace(/\r\n?|\n/g, '\r\n') }
    await visitor.post(`/checks/${id}/edit`, { ...sent, name: 'Other' })
    expect(await stored(id)).toMatchObject({ name: 'Other', description })
    await visitor.post(`/checks/${id}/edit`, { ...sent, description: 'one\r\ntwo' })
    expect((await stored(id)).description).toBe('one\ntwo')
  })

  it('keeps the fields that were not sent', async () => {
    const { id } = await create({
      name: 'Whole',
      slug: 'whole',
      description: 'kept',
      tags: 'kept',
      labels: 'kept=yes',
      period_seconds: '1h',
    })
    const { status } = await visitor.post(`/checks/${id}/edit`, { name: 'Part', schedule: '0 2 * * *' })
    expect(status).toBe(303)
    expect(await stored(id)).toMatchObject({
      name: 'Part',
      slug: 'whole',
      description: 'kept',
      tags: ['kept'],
      labels: { kept: 'yes' },
      schedule: '0 2 * * *',
      period_seconds: null,
    })
  })

  it('is 404 for a check that is unknown, removed meanwhile, or of another organization', async () => {
    const other = await api.addOrganization()
    const foreign = await api.addCheck({ project_id: other.project, name: 'Foreign' }, other.keys.write)
    const { id: removed } = await create({ name: 'Removed' })
    const form = readForm((await visitor.get(`/checks/${removed}/edit`)).text, `/checks/${removed}/edit`)
    await api.client.delete(`/checks/${removed}`)
    for (const id of [foreign.id, removed, 'x', '00000000-0000-4000-8000-000000000000']) {
      expect((await visitor.get(`/checks/${id}/edit`)).status).toBe(404)
      expect((await visitor.get(`/checks/${id}/how`)).status).toBe(404)
      expect((await visitor.post(`/checks/${id}/edit`, { ...form, name: 'Mine' })).status).toBe(404)
    }
    expect((await api.client.get(`/checks/${foreign.id}`, { key: other.keys.read })).body.name).toBe('Foreign')
  })
})

describe('a check that Kubernetes manages', () => {
  const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'nightly-backup' }
  let id: string
  const declare = async (texts: CheckTexts) => {
    const projectId = (await resolveProject(api.context, { ...RESOURCE, allowed: null, wanted: null })).id
    const spec = { ...NO_SPEC, schedule: '0 2 * * *', graceSeconds: 60 }
    const declaration = { resource: RESOURCE, projectId, ...texts, spec, suspend: null, adoptId: null }
    return (await declareCheck(api.context, declaration)).check.id
  }
  beforeEach(async () => {
    id = await declare({ ...NO_TEXTS, name: 'Nightly' })
  })

  it('has a read-only form and the manifest to apply instead', async () => {
    const { status, text } = await visitor.get(`/checks/${id}/edit`)
    expect(status).toBe(200)
    expect(text).toContain('payments/nightly-backup')
    expect(text).not.toMatch(/<form[^>]*action="\/checks|type="submit">Save/)
    for (const field of text.match(/<(?:input|textarea)[^>]*name="(?!_)[^>]*>/g)!) expect(field).toContain(' readonly')
    expect(readFields(text)).toMatchObject({ name: 'Nightly', schedule: '0 2 * * *', grace_seconds: '1 minute' })
    expect(manifestOf(text)).toEqual({
      apiVersion: 'heartbeat-operator.io/v1',
      kind: 'HeartbeatCheck',
      metadata: { name: 'nightly-backup', namespace: 'payments' },
      spec: { displayName: 'Nightly', schedule: '0 2 * * *', timeZone: 'UTC', graceSeconds: 60 },
    })
  })

  const manifestOf = (page: string) => {
    const [, manifest] = /<code id="manifest">([\s\S]*?)<\/code>/.exec(page)!
    const [document, ...more] = parseAllDocuments(decodeHtml(manifest!), { version: '1.1' })
    expect([document!.errors, more]).toEqual([[], []])
    return document!.toJS()
  }

  it('has a manifest with its labels', async () => {
    const labels = { team: 'shop', true: '', 'example.com/1.5': '0x1' }
    await declare({ ...NO_TEXTS, name: 'Nightly', labels })
    const page = (await visitor.get(`/checks/${id}/edit`)).text
    expect(manifestOf(page).metadata).toEqual({ name: 'nightly-backup', namespace: 'payments', labels })
    expect(readFields(page).labels).toBe('example.com/1.5=0x1\nteam=shop\ntrue=')
    const about = (await visitor.get(`/checks/${id}`)).text
    expect(about).toMatch(
      /<dt>Labels<\/dt><dd><span class="tag">example.com\/1.5=0x1<\/span> <span class="tag">team=shop</,
    )
  })

  it.each([...HOSTILE, 'a: b # c', '- x\n---\nkind: Secret', "it's \\n", '\u2028 {{ x }}'])(
    'has a manifest that stays valid with hostile text: %j',
    async (text) => {
      const name = text.replaceAll('\n', ' ')
      await declare({ ...NO_TEXTS, name, description: text, tags: ['a:b', '-'] })
      const page = (await visitor.get(`/checks/${id}/edit`)).text
      // A HeartbeatCheck takes no characters that turn the direction of a name.
      const displayName = name.replaceAll('\u202e', '')
      expect(manifestOf(page).spec).toMatchObject({ displayName, description: text, tags: ['a:b', '-'] })
    },
  )

  it('rejects a change with 409, and shows the manifest', async () => {
    const { status, text } = await visitor.post(`/checks/${id}/edit`, { name: 'Mine' })
    expect([status, text.includes('id="manifest"')]).toEqual([409, true])
    expect((await stored(id)).name).toBe('Nightly')
  })

  it('shows on the page of its snippets the Secret that it publishes, first', async () => {
    const { text } = await visitor.get(`/checks/${id}/how`)
    expect(text).toContain('nightly-backup-heartbeat')
    expect(text.indexOf('id="how-kubernetes"')).toBeLessThan(text.indexOf('id="how-curl"'))
  })
})

describe('how to ping', () => {
  it('has each snippet with the URL, and a button that copies it', async () => {
    const check = await create({ name: 'How' })
    const { status, text } = await visitor.get(`/checks/${check.id}/how`)
    expect(status).toBe(200)
    for (const id of ['curl', 'crontab', 'bash', 'kubernetes', 'python', 'node', 'go', 'powershell']) {
      const [, code] = new RegExp(`<code id="snippet-${id}">([\\s\\S]*?)</code>`).exec(text) ?? []
      expect(decodeHtml(code!)).toContain(check.ping_url)
      expect(text).toMatch(new RegExp(`<button type="button" class="[^"]*script-only" data-copy="snippet-${id}">`))
    }
    expect(text).toContain(`<code id="ping-url">${check.ping_url}</code>`)
  })

  it('a name turns the direction of no title and of no choice', async () => {
    const check = await create({ name: 'A\u202Egnp.exe' })
    await api.client.post('/projects', { name: 'B\u202Egnp.exe', slug: 'turned' })
    for (const path of ['', '/how', '/edit', '/delete', '/pings']) {
      const { text } = await visitor.get(`/checks/${check.id}${path}`)
      expect([path, /<title>(.*)<\/title>/.exec(text)![1]]).toEqual([path, expect.stringMatching(/^[^\u202E]+$/)])
    }
    for (const path of ['/checks/new', '/checks', '/settings'])
      expect([path, (await visitor.get(path)).text.match(/<option[^>]*>[^<]*\u202E/)]).toEqual([path, null])
    expect((await visitor.get('/checks/new')).text).toContain('>Bgnp.exe</option>')
  })

  it('says whether a ping has arrived', async () => {
    const check = await create({ name: 'Arrives' })
    const arrival = async () =>
      /<p id="arrived"[^>]*>([\s\S]*?)<\/p>/.exec((await visitor.get(`/checks/${check.id}/how`)).text)![1]
    expect(await arrival()).toContain('No ping has arrived yet')
    await api.ping(check.public_id, { type: 'log', exitCode: null })
    expect(await arrival()).toBe('Pings arrive.')
    await api.ping(check.public_id, { type: 'start', exitCode: null })
    expect(await arrival()).toMatch(
      /^Pings arrive: the last one came <time datetime="[^"]+" title="[^"]+">just now<\/time>/,
    )
  })
})

describe('a user with scope read', () => {
  it('gets 403 with a page for the forms, and on how to ping no URL but who can see it', async () => {
    const reader = await visit(api, 'read')
    const check = await create({ name: 'Read' })
    for (const path of ['/checks/new', '/checks/preview', `/checks/${check.id}/edit`]) {
      const { status, text } = await reader.get(path)
      expect([path, status, text.includes('needs the scope write')]).toEqual([path, 403, true])
    }
    expect((await reader.post('/checks/new', { name: 'Mine' })).status).toBe(403)
    expect((await reader.post(`/checks/${check.id}/edit`, { name: 'Mine' })).status).toBe(403)
    const { status, text } = await reader.get(`/checks/${check.id}/how`)
    expect(status).toBe(200)
    expect(text).not.toContain(check.public_id)
    expect(text).not.toMatch(/<button(?! class="secondary outline" type="submit">Log out)/)
    expect(text).not.toContain('class="button')
    expect(text).toContain('Users with the scope <code>write</code>')
  })
})
