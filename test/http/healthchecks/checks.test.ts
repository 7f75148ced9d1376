import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { uniqueKeyOf } from '../../../src/http/healthchecks/unique-key.ts'
import { addManyChecks } from '../../support/check.ts'
import { untilWaiting } from '../../support/database.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { addProject, callerOf, type Project } from './support.ts'

const SECOND = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

let project: Project
let site: string

const api = use(startTestApi)
const call = callerOf(api, () => project.keys.write)
beforeAll(async () => {
  site = api.url.replace('/api/v1', '')
})
beforeEach(async () => {
  project = await addProject(api)
})

const create = async (json: object = {}, version = 3) => {
  const { status, body } = await call('POST', `v${version}/checks/`, { json })
  expect(status, JSON.stringify(body)).toBe(201)
  return body
}
/** Of our own API. */
const idOf = async (uuid: string) =>
  (await api.database.query<{ id: string }>('select id from checks where public_id = $1', [uuid])).rows[0]!.id
const error = (text: string) => ({ error: text })

describe('creating a check', () => {
  it('answers with all fields of healthchecks, and defaults for what was left out', async () => {
    const badgeKey = (await api.client.get(`/projects/${project.id}/badge-key`)).body.badge_key
    const body = await create({
      name: 'Database Backup',
      slug: 'db',
      tags: 'production db',
      desc: 'Nightly',
      timeout: 3_600,
    })
    const url = `${site}/api/v3/checks/${body.uuid}`
    expect(body).toEqual({
      name: 'Database Backup',
      slug: 'db',
      tags: 'production db',
      desc: 'Nightly',
      grace: 3_600,
      n_pings: 0,
      status: 'new',
      started: false,
      last_ping: null,
      next_ping: null,
      manual_resume: false,
      methods: '',
      subject: '',
      subject_fail: '',
      start_kw: '',
      success_kw: '',
      failure_kw: '',
      filter_subject: false,
      filter_body: false,
      filter_http_body: false,
      filter_default_fail: false,
      badge_url: `${site}/badge/${badgeKey}/db.svg`,
      uuid: expect.stringMatching(UUID),
      ping_url: `https://ping.example.com/ping/${body.uuid}`,
      update_url: url,
      pause_url: `${url}/pause`,
      resume_url: `${url}/resume`,
      channels: '',
      timeout: 3_600,
    })
    expect(api.audited.at(-1)).toMatchObject({ action: 'check.created', actor: { kind: 'api_key', name: 'write' } })
  })

  it('without anything makes a check of a day and an hour, named by its uuid', async () => {
    const { uuid, name, slug, timeout, grace } = await create()
    const standard = `check-${uuid.slice(0, 8)}`
    expect({ name, slug, timeout, grace }).toEqual({ name: standard, slug: standard, timeout: 86_400, grace: 3_600 })
  })

  it('with an empty slug shows the empty slug, and keeps one of its own for pings and badges', async () => {
    for (const version of [1, 2, 3]) {
      const made = await create({ name: `Empty ${version}`, slug: '' }, version)
      expect(made).toMatchObject({ slug: '', badge_url: expect.stringContaining(`/empty-${version}.svg`) })
      expect((await call('GET', `v${version}/checks/${made.uuid}`)).body.slug).toBe('')
      expect((await call('GET', `v3/checks/?slug=empty-${version}`)).body.checks[0].uuid).toBe(made.uuid)
      const { id, slug } = (await api.client.get(`/checks?project_id=${project.id}&slug=empty-${version}`)).body
        .checks[0]
      expect(slug).toBe(`empty-${version}`)
      // A slug that is given is shown, by either API.
      expect((await call('POST', `v3/checks/${made.uuid}`, { json: { slug: '' } })).body.slug).toBe('')
      expect((await call('POST', `v3/checks/${made.uuid}`, { json: { desc: 'x' } })).body.slug).toBe('')
      await api.client.put(`/checks/${id}`, { slug: `own-${version}` })
      expect((await call('GET', `v3/checks/${made.uuid}`)).body.slug).toBe(`own-${version}`)
      expect((await call('POST', `v3/checks/${made.uuid}`, { json: { slug: '' } })).body.slug).toBe('')
      expect((await call('POST', `v3/checks/${made.uuid}`, { json: { slug: 'own' } })).body.slug).toBe('own')
      await call('DELETE', `v3/checks/${made.uuid}`)
    }
  })

  it('without a name is named by its slug', async () => {
    expect(await create({ name: '', slug: 'nightly' })).toMatchObject({ name: 'nightly', slug: 'nightly' })
  })

  it.each([1, 2, 3])('of version %i has its own addresses, and a free slug from the name', async (version) => {
    const first = await create({ name: 'Foo Bar' }, version)
    const second = await create({ name: 'Foo Bar' }, version)
    expect([first.slug, second.slug]).toEqual(['foo-bar', 'foo-bar-2'])
    expect(first.update_url).toBe(`${site}/api/v${version}/checks/${first.uuid}`)
  })

  it('of versions 1 and 2 has the slug that healthchecks makes of its name, with a number if it is taken', async () => {
    const slugs = async (version: number) => {
      const made = []
      for (const name of ['db_backup', 'db.backup/main', 'db_backup']) made.push((await create({ name }, version)).slug)
      return made
    }
    expect(await slugs(1)).toEqual(['db_backup', 'dbbackupmain', 'db_backup-2'])
    expect(await slugs(2)).toEqual(['db_backup-3', 'dbbackupmain-2', 'db_backup-4'])
    expect((await create({ name: 'db_backup', slug: 'own' }, 1)).slug).toBe('own')
    expect(await slugs(3)).toEqual(['db-backup', 'db-backup-main', 'db-backup-2'])
  })

  it('with a schedule has schedule and tz instead of a timeout, which is ignored', async () => {
    const body = await create({ schedule: '15 5 * * *', tz: 'Europe/Riga', timeout: 60 })
    expect(body).toMatchObject({ schedule: '15 5 * * *', tz: 'Europe/Riga' })
    expect(body).not.toHaveProperty('timeout')
    expect(await create({ schedule: '15 5 * * *' })).toMatchObject({ tz: 'UTC' })
    expect(await create({ tz: 'Europe/Riga' })).toMatchObject({ timeout: 86_400 })
  })

  it.each([
    [{ timeout: 59 }, 'json validation error: timeout is too small'],
    [{ methods: 'POST' }, 'json validation error: methods is not supported here: only "" is accepted'],
    [{ channels: 'a,,b' }, 'invalid channel identifier: a'],
    [{ channels: ',' }, 'empty channel identifier'],
    [
      { channels: '4ec5a071-2d08-4baa-898a-eb4eb3cd6941' },
      'invalid channel identifier: 4ec5a071-2d08-4baa-898a-eb4eb3cd6941',
    ],
  ])('rejects %j', async (json, text) => {
    expect(await call('POST', 'v3/checks/', { json })).toMatchObject({ status: 400, body: error(text) })
  })

  it.each([
    ['{', 'could not parse request body'],
    ['[]', 'json validation error: value is not an object'],
    ['"x"', 'json validation error: value is not an object'],
    ['null', 'json validation error: value is not an object'],
  ])('rejects the body %s', async (body, text) => {
    expect(await call('POST', 'v3/checks/', { body })).toMatchObject({ status: 400, body: error(text) })
  })

  it('takes bodies up to the limit of the management API', async () => {
    const fill = (length: number) => `{"x":"${'a'.repeat(length - 8)}"}`
    expect((await call('POST', 'v3/checks/', { body: fill(65_536) })).status).toBe(201)
    expect((await call('POST', 'v3/checks/', { body: fill(65_537) })).status).toBe(413)
  })

  it('rejects a slug that is taken', async () => {
    await create({ slug: 'db' })
    expect(await call('POST', 'v3/checks/', { json: { slug: 'db' } })).toMatchObject({
      status: 400,
      body: error('slug is taken'),
    })
  })
})

describe('unique', () => {
  const upsert = (json: object) => call('POST', 'v3/checks/', { json })

  it.each([
    ['name', { name: 'A' }],
    ['slug', { slug: 'a' }],
    ['tags', { tags: 'x y' }],
    ['timeout', { timeout: 120 }],
    ['grace', { grace: 120 }],
  ])('%s finds the check, and changes it', async (field, given) => {
    const first = await upsert({ ...given, unique: [field] })
    const second = await upsert({ ...given, desc: 'changed', unique: [field] })
    expect([first.status, second.status]).toEqual([201, 200])
    expect(second.body).toMatchObject({ uuid: first.body.uuid, desc: 'changed' })
    expect((await upsert({ ...given })).status).toBe(field === 'slug' ? 400 : 201)
  })

  it('all fields must match', async () => {
    await create({ name: 'A', timeout: 120 })
    expect((await upsert({ name: 'A', timeout: 180, unique: ['name', 'timeout'] })).status).toBe(201)
    expect((await upsert({ name: 'A', timeout: 120, unique: ['name', 'timeout'] })).status).toBe(200)
  })

  it('a field that is not given finds nothing', async () => {
    await create({ name: 'A' })
    expect((await upsert({ name: 'A', unique: ['name', 'tags'] })).status).toBe(201)
  })

  it('finds a check without a name by the slug that it is named by, and none without a slug', async () => {
    const named = { name: '', slug: 'emp', unique: ['name'] }
    const first = await upsert(named)
    const second = await upsert({ ...named, desc: 'changed' })
    expect([first.status, second.status]).toEqual([201, 200])
    expect(second.body).toMatchObject({ uuid: first.body.uuid, name: 'emp', slug: 'emp', desc: 'changed' })
    for (const slug of [{}, { slug: '' }])
      expect((await upsert({ name: '', ...slug, unique: ['name'] })).status).toBe(201)
  })

  it('makes one check when the same call comes twice at once', async () => {
    const { answers } = await api.database.transaction(async (tx) => {
      // The calls meet at the row of their project; each of them has one of the few connections meanwhile.
      await tx.query('select from projects where id = $1 for update', [project.id])
      const calls = [1, 2].map(() => upsert({ name: 'Once', unique: ['name'] }))
      await untilWaiting(api, 2)
      return { answers: Promise.all(calls) }
    })
    const all = await answers
    expect(all.map(({ status }) => status).sort()).toEqual([200, 201])
    expect(new Set(all.map(({ body }) => body.uuid)).size).toBe(1)
  })

  it('twice with all fields, as a tool that describes checks sends them: the second call changes nothing', async () => {
    const { id } = await api.addChannel({ project_id: project.id })
    const common = {
      ...{ name: 'Nightly backup', slug: '', tags: 'prod db', desc: 'One\r\nTwo ', grace: 3_600, manual_resume: false },
      ...{ methods: '', subject: '', start_kw: '', filter_subject: false, channels: id, unique: ['name'] },
    }
    for (const [version, when] of [
      [3, { timeout: 86_400 }],
      [3, { schedule: '0 2  * * 1-5', tz: 'Europe/Riga' }],
      [1, { timeout: 120, channels: '' }],
      [2, { slug: 'given', manual_resume: true }],
    ] as const) {
      const { unique, ...sent } = { ...common, ...when, name: `Backup ${version} ${Object.keys(when)[0]}` }
      const json = { ...sent, unique }
      const path = `v${version}/checks/`
      const first = await call('POST', path, { json })
      const entries = api.audited.length
      const { updated_at } = (await api.client.get(`/checks/${await idOf(first.body.uuid)}`)).body
      const second = await call('POST', path, { json })
      expect([first.status, second.status]).toEqual([201, 200])
      expect(second.body).toEqual(first.body)
      expect(second.body).toMatchObject(sent)
      expect(api.audited.slice(entries)).toEqual([])
      expect((await api.client.get(`/checks/${await idOf(first.body.uuid)}`)).body.updated_at).toBe(updated_at)
    }
  })

  it('an empty slug finds the check whose slug was left empty, and no other', async () => {
    await create({ name: 'Other', slug: 'other' })
    const json = { name: 'Empty', slug: '', unique: ['slug'] }
    const [first, second] = [await upsert(json), await upsert(json)]
    expect([first.status, second.status, second.body.uuid]).toEqual([201, 200, first.body.uuid])
  })

  it('finds no check of another project', async () => {
    await create({ name: 'A' })
    const other = await addProject(api)
    const json = { name: 'A', unique: ['name'] }
    expect((await call('POST', 'v3/checks/', { json, key: other.keys.write })).status).toBe(201)
  })
})

describe('reading checks', () => {
  it('lists all of the project, oldest first, by slug and by all of the tags', async () => {
    await create({ name: 'A', tags: 'x y', desc: 'text' })
    await create({ name: 'B', tags: 'x' })
    const names = async (query: string) =>
      (await call('GET', `v3/checks/${query}`)).body.checks.map(({ name }: { name: string }) => name)
    expect(await names('')).toEqual(['A', 'B'])
    expect(await names('?tag=x')).toEqual(['A', 'B'])
    expect(await names('?tag=x&tag=y')).toEqual(['A'])
    for (const query of ['?tag=z', '?tag=', '?tag=%00', '?tag=x&tag=%ff', '?slug=%00', '?slug=A%20B'])
      expect(await names(query)).toEqual([])
    expect(await names('?slug=b')).toEqual(['B'])
    expect(await names('?slug=')).toEqual(['A', 'B'])
    expect(await names('?colour=red')).toEqual(['A', 'B'])
    expect((await call('GET', 'v3/checks/')).body.checks[0].desc).toBe('text')
  })

  it('lists more checks than a page has', async () => {
    await addManyChecks(api, project.id, { to: 2_100 })
    const { body, status } = await call('GET', 'v3/checks/')
    expect(status).toBe(200)
    expect(new Set(body.checks.map(({ uuid }: { uuid: string }) => uuid)).size).toBe(2_100)
    const last = body.checks.at(-1).uuid
    expect((await call('GET', `v3/checks/${uniqueKeyOf(last)}`)).body.uuid).toBe(last)
  })

  it('by uuid and by unique key are the same', async () => {
    const made = await create({ name: 'A' })
    const byUuid = await call('GET', `v3/checks/${made.uuid}`)
    expect(byUuid).toMatchObject({ status: 200, body: made })
    expect((await call('GET', `v3/checks/${uniqueKeyOf(made.uuid)}`)).body).toEqual(byUuid.body)
  })

  it('with a key for reading shows a unique key, and no way to ping or to change', async () => {
    const { uuid } = await create({ name: 'A', tags: 'x' })
    const key = project.keys.read
    const [listed] = (await call('GET', 'v3/checks/', { key })).body.checks
    const uniqueKey = uniqueKeyOf(uuid)
    expect(listed.unique_key).toBe(uniqueKey)
    for (const name of ['uuid', 'ping_url', 'update_url', 'pause_url', 'resume_url', 'channels'])
      expect(listed).not.toHaveProperty(name)
    expect(JSON.stringify(listed)).not.toContain(uuid)
    expect((await call('GET', `v3/checks/${uniqueKey}`, { key })).body).toEqual(listed)
    expect((await call('GET', `v3/checks/${uuid}`, { key })).body).toEqual(listed)
    expect((await call('GET', `v3/checks/${uniqueKey}/flips/`, { key })).body).toEqual({ flips: [] })
    // The key of badges is a right of its own, which would outlive the key for reading.
    const badgeKey = (await api.client.get(`/projects/${project.id}/badge-key`)).body.badge_key
    for (const version of [1, 2, 3]) {
      const shown = await call('GET', `v${version}/checks/`, { key })
      expect(shown.body.checks[0].badge_url).toBe('')
      expect(await call('GET', `v${version}/badges/`, { key })).toMatchObject({ status: 200, body: { badges: {} } })
      const own = await call('GET', `v${version}/badges/`)
      expect(Object.keys(own.body.badges)).toEqual(['*', 'x'])
      expect(JSON.stringify(own.body)).toContain(badgeKey)
    }
  })

  it('by unique key finds none of another project', async () => {
    const { uuid } = await create({ name: 'A' })
    const other = await addProject(api)
    for (const { read } of [other.keys, project.keys])
      expect((await call('GET', `v3/checks/${uniqueKeyOf(uuid)}`, { key: read })).status).toBe(
        read === project.keys.read ? 200 : 404,
      )
    expect((await call('GET', `v3/checks/${uniqueKeyOf(uuid).toUpperCase()}`)).body.uuid).toBe(uuid)
  })

  it('shows the states as healthchecks does', async () => {
    const { uuid } = await create({ name: 'A', timeout: 60, grace: 60 })
    const shown = async (version = 3) => (await call('GET', `v${version}/checks/${uuid}`)).body
    await api.ping(uuid)
    expect(await shown()).toMatchObject({ status: 'up', n_pings: 1, last_ping: expect.stringMatching(SECOND) })
    const { last_ping, next_ping } = await shown()
    expect(Date.parse(next_ping) - Date.parse(last_ping)).toBe(60_000)
    await api.ping(uuid, { type: 'start' })
    expect(await shown()).toMatchObject({ status: 'up', started: true })
    expect(await shown(1)).toMatchObject({ status: 'started', started: true })
    await api.ping(uuid, { type: 'success', durationMs: 2_900 })
    expect(await shown()).toMatchObject({ started: false, last_duration: 2 })
    api.moveClock(90_000)
    expect(await shown()).toMatchObject({ status: 'grace' })
    await api.ping(uuid, { type: 'fail', exitCode: 1 })
    expect(await shown()).toMatchObject({ status: 'down', next_ping: null })
  })
})

describe('started', () => {
  const RUNS: Readonly<Record<string, string>> = {
    one: '123e4567-e89b-42d3-a456-426614174001',
    two: '123e4567-e89b-42d3-a456-426614174002',
  }

  /** What version 3 says after steps such as `start`, `start:one` (with a rid) and `pause`, with a second between them. */
  async function startedAfter(steps: string, check: object = {}) {
    const { uuid } = await create(check)
    for (const step of steps.split(' ')) {
      const [type = '', run = ''] = step.split(':')
      api.moveClock(1_000)
      if (type === 'pause' || type === 'resume') await call('POST', `v3/checks/${uuid}/${type}`)
      else await api.ping(uuid, { type: type as 'start' | 'success' | 'fail', runId: RUNS[run] ?? null })
    }
    const shown = (await call('GET', `v3/checks/${uuid}`)).body
    expect((await call('GET', `v1/checks/${uuid}`)).body.status).toBe(shown.started ? 'started' : shown.status)
    return shown.started
  }

  it.each([
    [false, 'a success without a rid', 'start:one success'],
    [false, 'a fail without a rid', 'start:one fail'],
    [false, 'a fail of another rid', 'start:one fail:two'],
    [false, 'a fail of a rid after a start without one', 'start fail:two'],
    [false, 'its own success, while an earlier run goes on', 'start:one start:two success:two'],
    [true, 'the success of an earlier run', 'start:one start:two success:one'],
    [true, 'a success of a rid after a start without one', 'start:one start success:one'],
    [true, 'a start after all of it', 'start:one fail start:two'],
    [false, 'a pause', 'start pause'],
    [true, 'a start in a pause', 'pause start'],
    [false, 'a resume after a start in the pause', 'pause start resume'],
  ])('is %s after %s', async (started, _, steps) => {
    expect(await startedAfter(steps)).toBe(started)
  })

  it('is false in a pause that no ping ends: healthchecks ignores the start', async () => {
    expect(await startedAfter('pause start', { manual_resume: true })).toBe(false)
  })
})

describe('changing a check', () => {
  it('changes what is given, and nothing else', async () => {
    const { uuid } = await create({ name: 'A', tags: 'x', desc: 'd', timeout: 120, grace: 120 })
    const path = `v3/checks/${uuid}`
    expect((await call('POST', path, { json: {} })).body).toMatchObject({ name: 'A', tags: 'x', timeout: 120 })
    const changed = { name: 'B', slug: 'b', tags: 'y z', desc: '', timeout: 180, grace: 60, manual_resume: true }
    expect(await call('POST', path, { json: changed })).toMatchObject({ status: 200, body: { ...changed, uuid } })
    expect((await call('POST', path, { json: { schedule: '* * * * *' } })).body).toMatchObject({ tz: 'UTC', grace: 60 })
    expect((await call('POST', path, { json: { tz: 'Europe/Riga' } })).body).toMatchObject({ tz: 'Europe/Riga' })
    expect((await call('POST', path, { json: { timeout: 60 } })).body).toMatchObject({ timeout: 60, name: 'B' })
    expect((await call('POST', path, { json: { tz: 'Europe/Riga' } })).status).toBe(200)
    expect((await call('POST', path, { json: { timeout: 59 } })).status).toBe(400)
    expect((await call('POST', path)).status).toBe(200)
  })

  it.each([1, 2, 3])('version %i: an empty name becomes the slug', async (version) => {
    const { uuid } = await create({ name: 'A', slug: 'a' })
    const path = `v${version}/checks/${uuid}`
    expect((await call('POST', path, { json: { name: '  ' } })).body).toMatchObject({ name: 'a', slug: 'a' })
    const both = { name: '', slug: `b${version}` }
    expect((await call('POST', path, { json: both })).body).toMatchObject({ name: both.slug, slug: both.slug })
  })

  it('gives a new name a new slug in versions 1 and 2, unless it is taken', async () => {
    const { uuid } = await create({ name: 'A' })
    await create({ name: 'Taken' })
    const rename = async (version: number, name: string) =>
      (await call('POST', `v${version}/checks/${uuid}`, { json: { name } })).body.slug
    expect(await rename(1, 'First Name')).toBe('first-name')
    expect(await rename(1, 'foo_bar baz')).toBe('foo_bar-baz')
    expect(await rename(2, 'Second Name')).toBe('second-name')
    expect(await rename(3, 'Third Name')).toBe('second-name')
    expect(await rename(2, 'Taken')).toBe('second-name')
  })

  it('rejects a slug that is taken', async () => {
    const { uuid } = await create({ slug: 'a' })
    await create({ slug: 'b' })
    expect(await call('POST', `v3/checks/${uuid}`, { json: { slug: 'b' } })).toMatchObject({
      status: 400,
      body: error('slug is taken'),
    })
  })

  it('deletes it, and returns what it was', async () => {
    const made = await create({ name: 'A' })
    expect(await call('DELETE', `v3/checks/${made.uuid}`)).toMatchObject({ status: 200, body: made })
    expect((await call('GET', `v3/checks/${made.uuid}`)).status).toBe(404)
    expect((await call('DELETE', `v3/checks/${made.uuid}`)).status).toBe(404)
  })
})

describe('a check that a HeartbeatCheck manages', () => {
  it('is shown and paused here, and changed and deleted there', async () => {
    const { uuid, name } = await create({ name: 'A' })
    await api.database.query(
      `update checks set managed_by = 'kubernetes', kubernetes_cluster = 'c', kubernetes_namespace = 'n', kubernetes_name = $2
        where public_id = $1`,
      [uuid, uuid],
    )
    const conflict = {
      status: 409,
      body: error(`check is managed by HeartbeatCheck n/${uuid} in cluster c; change the resource instead`),
    }
    expect(await call('POST', `v3/checks/${uuid}`, { json: { name: 'B' } })).toMatchObject(conflict)
    expect(await call('POST', 'v3/checks/', { json: { name, desc: 'x', unique: ['name'] } })).toMatchObject(conflict)
    expect(await call('DELETE', `v3/checks/${uuid}`)).toMatchObject(conflict)
    expect((await call('GET', `v3/checks/${uuid}`)).body.name).toBe('A')
    expect((await call('POST', `v3/checks/${uuid}/pause`)).status).toBe(200)
  })
})

describe('pausing', () => {
  it('and resuming; resuming a check that is not paused is a conflict', async () => {
    const { uuid } = await create({ name: 'A' })
    await api.ping(uuid)
    expect(await call('POST', `v3/checks/${uuid}/pause`)).toMatchObject({ status: 200, body: { status: 'paused' } })
    expect(await call('POST', `v3/checks/${uuid}/pause`, { body: '' })).toMatchObject({ status: 200 })
    expect(await call('POST', `v3/checks/${uuid}/resume`)).toMatchObject({
      status: 200,
      body: { status: 'new', next_ping: null },
    })
    expect(await call('POST', `v3/checks/${uuid}/resume`)).toMatchObject({ status: 409, body: 'check is not paused' })
  })

  it('ends with a ping, unless manual_resume is on', async () => {
    const soft = await create({ name: 'A' })
    const hard = await create({ name: 'B', manual_resume: true })
    for (const { uuid } of [soft, hard]) {
      await call('POST', `v3/checks/${uuid}/pause`)
      await api.ping(uuid)
    }
    const status = async ({ uuid }: { uuid: string }) => (await call('GET', `v3/checks/${uuid}`)).body.status
    expect([await status(soft), await status(hard)]).toEqual(['up', 'paused'])
  })
})

describe('channels', () => {
  const addChannel = async (name: string, scope: object = { project_id: project.id }, key?: string): Promise<string> =>
    (await api.addChannel({ name, ...scope }, key)).id

  it('are listed, and chosen by id and by name', async () => {
    const one = await addChannel('One')
    const two = await addChannel('Two')
    expect((await call('GET', 'v3/channels/')).body).toEqual({
      channels: [
        { id: one, name: 'One', kind: 'webhook' },
        { id: two, name: 'Two', kind: 'webhook' },
      ],
    })
    const all = [one, two].sort().join(',')
    expect(await create({})).toMatchObject({ channels: all })
    expect(await create({ channels: '*' })).toMatchObject({ channels: all })
    expect(await create({ channels: '' })).toMatchObject({ channels: '' })
    expect(await create({ channels: `Two,${two}` })).toMatchObject({ channels: two })
    const { uuid } = await create({ channels: `Two,${one}` })
    const path = `v3/checks/${uuid}`
    expect((await call('GET', path)).body.channels).toBe(all)
    expect((await call('POST', path, { json: { desc: 'x' } })).body.channels).toBe(all)
    expect((await call('POST', path, { json: { channels: '' } })).body.channels).toBe('')
  })

  it('of the whole organization are listed and chosen like those of the project', async () => {
    const own = await addChannel('Own')
    const shared = await addChannel('Shared', {})
    try {
      const all = [own, shared].sort().join(',')
      expect((await call('GET', 'v3/channels/')).body.channels).toEqual([
        { id: own, name: 'Own', kind: 'webhook' },
        { id: shared, name: 'Shared', kind: 'webhook' },
      ])
      expect(await create({ channels: '*' })).toMatchObject({ channels: all })
      expect(await create({ channels: 'Shared' })).toMatchObject({ channels: shared })
      expect(await create({ channels: shared.toUpperCase() })).toMatchObject({ channels: shared })
      const { uuid } = await create({ channels: 'Own,Shared' })
      expect((await call('GET', `v3/checks/${uuid}`)).body.channels).toBe(all)
      expect((await call('GET', 'v3/channels/', { key: project.keys.read })).status).toBe(403)
    } finally {
      await api.client.delete(`/channels/${shared}?force=true`)
    }
  })

  it('of the same name are ambiguous', async () => {
    await addChannel('Same')
    await addChannel('Same')
    expect(await call('POST', 'v3/checks/', { json: { channels: 'Same' } })).toMatchObject({
      status: 400,
      body: error('non-unique channel identifier: Same'),
    })
  })

  it('of another project or organization are unknown', async () => {
    const { keys } = await api.addOrganization()
    const ids = [
      await addChannel('Other', { project_id: (await addProject(api)).id }),
      await addChannel('Foreign', {}, keys.admin),
    ]
    for (const channels of [...ids, 'Other', 'Foreign'])
      expect(await call('POST', 'v3/checks/', { json: { channels } })).toMatchObject({ status: 400 })
    expect((await call('GET', 'v3/channels/')).body).toEqual({ channels: [] })
  })
})

describe('badges', () => {
  it('have six addresses for each tag and for the project', async () => {
    await create({ tags: 'prod a/b' })
    await create({ tags: 'prod' })
    const key = (await api.client.get(`/projects/${project.id}/badge-key`)).body.badge_key
    const { badges } = (await call('GET', 'v3/badges/')).body
    expect(Object.keys(badges).sort()).toEqual(['*', 'a/b', 'prod'])
    const at = (address: string) => ({
      svg: `${address}.svg?states=2`,
      svg3: `${address}.svg`,
      json: `${address}.json?states=2`,
      json3: `${address}.json`,
      shields: `${address}.shields?states=2`,
      shields3: `${address}.shields`,
    })
    expect(badges['*']).toEqual(at(`${site}/badge/${key}`))
    expect(badges.prod).toEqual(at(`${site}/badge/${key}/tag/prod`))
    expect(badges['a/b']).toEqual(at(`${site}/badge/${key}/tag/a%2Fb`))
  })

  it('are gone with the key', async () => {
    await create({ tags: 'prod' })
    await api.client.delete(`/projects/${project.id}/badge-key`)
    expect((await call('GET', 'v3/badges/')).body).toEqual({ badges: {} })
    expect((await call('GET', 'v3/checks/')).body.checks[0].badge_url).toBe('')
  })
})
