import { describe, expect, it } from 'vitest'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { SURVEY_LIMIT, type SurveyRequest, surveyChecks } from '../../../src/checks/survey-checks.ts'
import type { Tenant } from '../../../src/domain/access.ts'
import type { PingType } from '../../../src/domain/check.ts'
import { encodePlace } from '../../../src/domain/check-order.ts'
import { STRIP_RUNS, SURVEY_SORTS } from '../../../src/domain/survey.ts'
import { newId } from '../../../src/runtime/ids.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { STRIP_PINGS } from '../../../src/store/checks/survey.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import {
  addCheck,
  addEachStatus,
  addPingRow,
  addProject,
  addTenant,
  manageByKubernetes,
  NOW,
  periodSpec,
  ping,
  useFixture,
} from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture

const survey = (request: SurveyRequest = {}, who: Tenant = tenant) => surveyChecks(fixture.context, who, request)
const namesOf = async (request: SurveyRequest, who?: Tenant) =>
  (await survey(request, who)).checks.map(({ name }) => name)
const pinged = (check: CheckRecord, type: 'success' | 'start' | 'fail' | 'log', at: number, given = {}) =>
  fixture.database.transaction((tx) => ping(tx, check, type, at, given))

/** Many checks by one statement: of each the name, and how far its times and status are apart. */
async function addMany(count: number): Promise<string[]> {
  const { rows } = await fixture.database.query<{ id: string }>(
    `with made as (
        insert into checks (id, public_id, project_id, name, slug, created_at)
        select gen_random_uuid(), gen_random_uuid(), $1, 'check ' || n % 70, 'check-' || n, now() from generate_series(1, $2::int) n
        returning key, id),
      states as (
        insert into check_states (check_key, period_seconds, grace_seconds, status, reason, since, stamped_at, last_ping_at, expected_at, due_at)
        select key, 3600, 300, key % 4, (array['created', 'recovered', 'missed', 'paused'])[key % 4 + 1], now(), now(),
          case when key % 5 > 0 then $3::timestamptz + key % 60 * interval '1 microsecond' end,
          case when key % 4 < 2 and key % 3 > 0 then $3::timestamptz + key % 60 * interval '1 second' end,
          case when key % 4 < 2 and key % 3 > 0 then $3::timestamptz + key % 60 * interval '2 second' end
        from made)
      select id from made`,
    [tenant.project, count, new Date(NOW).toISOString()],
  )
  return rows.map(({ id }) => id)
}

/** All pages of an order, through the text of the cursor. */
async function readAll(
  request: SurveyRequest,
  between: (page: number, last: string) => Promise<unknown> = async () => {},
) {
  const ids: string[] = []
  let cursor: string | undefined
  for (let page = 1; page < 20; page += 1) {
    const { checks, next } = await survey({ ...request, ...(cursor === undefined ? {} : { cursor }) })
    ids.push(...checks.map(({ id }) => id))
    if (next === null) return ids
    cursor = next
    await between(page, ids.at(-1)!)
  }
  throw new Error('the list has no end')
}

describe('the list', () => {
  it('has the checks of all projects of the organization, and of no other', async () => {
    const other = await addProject(fixture, tenant, 'other')
    const mine = await addCheck(fixture, tenant, { name: 'mine' })
    const second = await addCheck(fixture, tenant, { name: 'second', projectId: other })
    const foreign = await addTenant(fixture)
    await addCheck(fixture, foreign, { name: 'foreign' })
    const { checks, counts, next } = await survey({ sort: 'name' })
    expect(checks.map(({ id }) => id)).toEqual([mine.id, second.id])
    expect(checks.map(({ project }) => project.slug)).toEqual(['test', 'other'])
    expect(counts).toEqual({ new: 2, up: 0, late: 0, down: 0, paused: 0 })
    expect(next).toBeNull()
    expect(await namesOf({}, { organizationId: tenant.organizationId, projectId: other })).toEqual(['second'])
    expect(await namesOf({}, await addTenant(fixture))).toEqual([])
  })

  it('shows each check as it is read alone, but for its description', async () => {
    const check = await addCheck(fixture, tenant, { description: 'Long text' })
    await manageByKubernetes(fixture, check, null)
    await pinged(check, 'fail', NOW)
    const [row] = (await survey()).checks
    expect(row).toMatchObject({
      id: check.id,
      managedBy: 'kubernetes',
      kubernetes: { cluster: 'default', namespace: 'payments', name: 'nightly' },
      state: { status: 'down', reason: 'failed', since: NOW },
      spec: check.spec,
      description: null,
    })
  })

  it('has no rows and no counts without checks', async () => {
    expect(await survey()).toMatchObject({
      checks: [],
      counts: { new: 0, up: 0, late: 0, down: 0, paused: 0 },
      nextLateAt: null,
      next: null,
    })
  })
})

describe('the filters', () => {
  it('project is a slug or an id; those of others are unknown', async () => {
    const other = await addProject(fixture, tenant, 'other')
    await addCheck(fixture, tenant, { name: 'mine' })
    await addCheck(fixture, tenant, { name: 'second', projectId: other })
    for (const project of ['other', other, other.toUpperCase()]) expect(await namesOf({ project })).toEqual(['second'])
    expect((await survey({ project: 'other' })).counts.new).toBe(1)
    // The id of one project may be the slug of another.
    const confusing = await addProject(fixture, tenant, other)
    expect((await survey({ project: other })).project?.id).toBe(other)
    expect((await survey({ project: confusing })).project?.slug).toBe(other)
    const foreign = await addTenant(fixture, 'foreign')
    for (const project of ['foreign', foreign.project, 'OTHER', '', '\0', '\ud800', `other' or true --`])
      await expect(survey({ project })).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
    const bound = { organizationId: tenant.organizationId, projectId: tenant.project }
    await expect(survey({ project: 'other' }, bound)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('status follows what is shown at the time of the database, and leaves the counts alone', async () => {
    await addEachStatus(fixture, tenant)
    for (const status of ['new', 'up', 'late', 'down', 'paused'] as const) {
      const { checks, counts } = await survey({ status })
      expect(checks.map(({ name }) => name)).toEqual([status])
      expect(counts).toEqual({ new: 1, up: 1, late: 1, down: 1, paused: 1 })
    }
    fixture.clock.time = NOW + HOUR - 0.001
    expect((await survey()).counts).toEqual({ new: 1, up: 2, late: 0, down: 1, paused: 1 })
  })

  it('the next time that a check becomes late is of all that are up and pass the filter, on this page or not', async () => {
    await addEachStatus(fixture, tenant)
    const lateAt = NOW + 90 * MINUTE
    for (const request of [{}, { status: 'down' }, { q: 'UP' }, { sort: 'name' }] as const)
      expect((await survey(request)).nextLateAt).toBe(lateAt)
    expect((await survey({ q: 'late' })).nextLateAt).toBeNull()
    expect((await survey({}, await addTenant(fixture, 'other'))).nextLateAt).toBeNull()
    fixture.clock.time = lateAt - 1
    expect((await survey()).nextLateAt).toBe(lateAt)
    fixture.clock.time = lateAt
    expect((await survey()).nextLateAt).toBeNull()
  })

  it('q is a part of the name or of the slug, and counts what it finds', async () => {
    await addCheck(fixture, tenant, { name: 'Ledger', slug: 'first' })
    await addCheck(fixture, tenant, { name: 'Second', slug: 'ledger_2' })
    await addCheck(fixture, tenant, { name: 'Other', slug: 'other' })
    expect(await namesOf({ q: 'LEDGER', sort: 'name' })).toEqual(['Ledger', 'Second'])
    expect((await survey({ q: 'ledger' })).counts.new).toBe(2)
    for (const q of ['%', '$1', '\u202e', `${'x'.repeat(10_000)}`]) expect(await namesOf({ q })).toEqual([])
    expect(await namesOf({ q: '' })).toHaveLength(3)
  })
})

describe('the orders', () => {
  it('put what is down first, then what is late, and names in order', async () => {
    await addEachStatus(fixture, tenant)
    const second = await addCheck(fixture, tenant, { name: 'Alpha' })
    await pinged(second, 'fail', NOW)
    const expected = ['Alpha', 'down', 'late', 'new', 'up', 'paused']
    expect(await namesOf({})).toEqual(expected)
    expect(await namesOf({ sort: 'status' })).toEqual(expected)
    expect(await namesOf({ sort: '-status' })).toEqual([...expected].reverse())
  })

  it('by name leaves capitals aside', async () => {
    for (const name of ['beta', 'Alpha', 'ALPHA 2', 'Äther', 'zulu']) await addCheck(fixture, tenant, { name })
    const expected = ['Alpha', 'ALPHA 2', 'beta', 'zulu', 'Äther']
    expect(await namesOf({ sort: 'name' })).toEqual(expected)
    expect(await namesOf({ sort: '-name' })).toEqual([...expected].reverse())
  })

  it('by last ping begins with what was never pinged', async () => {
    await addEachStatus(fixture, tenant)
    expect((await namesOf({ sort: 'last_ping' })).slice(2)).toEqual(['late', 'down', 'up'])
    expect((await namesOf({ sort: '-last_ping' })).slice(0, 3)).toEqual(['up', 'down', 'late'])
  })

  it('by due has the order of the times that the list shows, and ends with what has none', async () => {
    await addEachStatus(fixture, tenant)
    const running = await addCheck(fixture, tenant, { name: 'running', spec: periodSpec({ maxRuntimeSeconds: 60 }) })
    await pinged(running, 'success', fixture.clock.time - MINUTE)
    await pinged(running, 'start', fixture.clock.time)
    const first = await addCheck(fixture, tenant, { name: 'first run', spec: periodSpec({ maxRuntimeSeconds: 90 }) })
    await pinged(first, 'start', fixture.clock.time)
    // With a long grace time: its deadline comes after that of the others.
    fixture.clock.time -= 45 * MINUTE
    const spec = periodSpec({ periodSeconds: 3_600, graceSeconds: 86_400 })
    await pinged(await addCheck(fixture, tenant, { name: 'graceful', spec }), 'success', fixture.clock.time)
    fixture.clock.time += 45 * MINUTE
    // Two runs must end in 60 and 90 s; late is down in 5 min; the others are expected in 15 and 30 min.
    const inOrder = ['running', 'first run', 'late', 'graceful', 'up']
    expect((await namesOf({ sort: 'due' })).slice(0, 5)).toEqual(inOrder)
    expect((await namesOf({ sort: '-due' })).slice(-5)).toEqual([...inOrder].reverse())
  })
})

describe('pages', () => {
  it('have at most the limit, and no row is lost or doubled in any order', async () => {
    const ids = (await addMany(2 * SURVEY_LIMIT + 5)).sort()
    for (const sort of SURVEY_SORTS) {
      const read = await readAll({ sort })
      expect(read.length).toBe(ids.length)
      expect([...read].sort()).toEqual(ids)
      const reverse = sort.startsWith('-') ? sort.slice(1) : `-${sort}`
      expect(await readAll({ sort: reverse as typeof sort })).toEqual(read.reverse())
    }
    expect((await survey()).checks).toHaveLength(SURVEY_LIMIT)
    expect(await readAll({ sort: 'name', q: 'check 1' })).toHaveLength((await readAll({ q: 'check 1' })).length)
  })

  it('keep rows in place while others come, go and change', async () => {
    await addMany(2 * SURVEY_LIMIT + 50)
    for (const sort of SURVEY_SORTS) {
      const before = await readAll({ sort })
      const read = await readAll({ sort }, async (page, last) => {
        await addCheck(fixture, tenant, { name: `!${page}` })
        await addCheck(fixture, tenant, { name: `~${page}` })
        // The last row of the page before: the cursor names a check that is gone.
        await removeCheck(fixture.context, tenant, last)
        // A check that was shown changes its place.
        await fixture.database.query(
          `update check_states set status = 2, reason = 'missed', expected_at = null, due_at = null, last_ping_at = now()
            where check_key = (select key from checks where id = $1)`,
          [before[0]],
        )
      })
      const stayed = before.slice(1)
      const known = new Set(before)
      expect(read.slice(1).filter((id) => known.has(id) && id !== before[0])).toEqual(stayed)
    }
  })

  it('that exactly fill the list have no next one', async () => {
    await addMany(SURVEY_LIMIT)
    expect((await survey()).next).toBeNull()
  })

  it('exist only for cursors of the same order', async () => {
    await addMany(SURVEY_LIMIT + 1)
    const { next } = await survey({ sort: 'name' })
    await expect(survey({ sort: '-name', cursor: next! })).rejects.toMatchObject({
      code: 'invalid_request',
      message: 'this page belongs to another order of the list: open the list from its start',
    })
    const id = newId(NOW)
    const forged = [
      '',
      'x',
      `${next}x`,
      next!.slice(0, -2),
      'A'.repeat(100_000),
      Buffer.from('null').toString('base64url'),
      Buffer.from(JSON.stringify(['name', 'a', 'no-uuid'])).toString('base64url'),
      Buffer.from(JSON.stringify(['name', 'a', { id }])).toString('base64url'),
      Buffer.from(JSON.stringify(['toString', 'a', id])).toString('base64url'),
      Buffer.from(`["name", "a", "${id}"]`).toString('base64url'),
      encodePlace({ sort: 'name', by: [], id }),
      encodePlace({ sort: 'name', by: ['a', 'b'], id }),
      encodePlace({ sort: 'name', by: [1], id }),
      encodePlace({ sort: 'name', by: [null], id }),
      encodePlace({ sort: 'name', by: ['\0'], id }),
      encodePlace({ sort: 'name', by: ['\ud800'], id }),
    ]
    for (const cursor of forged)
      await expect(survey({ sort: 'name', cursor })).rejects.toMatchObject({
        code: 'invalid_request',
        message: 'the address of this page is incomplete or changed: open the list from its start',
      })
    for (const by of [[5, 'a'], [-1, 'a'], [0.5, 'a'], ['0', 'a'], [0]])
      await expect(survey({ cursor: encodePlace({ sort: 'status', by, id }) })).rejects.toMatchObject({
        code: 'invalid_request',
      })
    for (const by of [['now'], [-1], [8e15], [1e300]])
      await expect(survey({ sort: 'due', cursor: encodePlace({ sort: 'due', by, id }) })).rejects.toMatchObject({
        code: 'invalid_request',
      })
    // Well formed, and of nothing that is there: it only says where to go on.
    for (const by of [[null], [0], [253_402_300_799_999]])
      await expect(survey({ sort: '-due', cursor: encodePlace({ sort: '-due', by, id }) })).resolves.toBeDefined()
  })
})

describe('the last runs', () => {
  const runsOf = async () => (await survey()).checks[0]!.runs

  it('are completions and missed deadlines in the order of the history, oldest first', async () => {
    const check = await addCheck(fixture, tenant)
    await addFlipRow(check.key, NOW, 'created')
    await addRun(check.key, NOW, 'warn', 20)
    await addRun(check.key, NOW + 1, 'success', 1_500)
    await addRun(check.key, NOW + 2, 'start', null)
    await addRun(check.key, NOW + 3, 'fail', 0)
    await addFlipRow(check.key, NOW + 3, 'failed')
    await addRun(check.key, NOW + 4, 'log', null)
    await addRun(check.key, NOW + 5, 'success', null)
    await addFlipRow(check.key, NOW + 6, 'missed')
    await addFlipRow(check.key, NOW + 7, 'overran')
    await addFlipRow(check.key, NOW + 8, 'outage')
    await addFlipRow(check.key, NOW + 9, 'paused')
    expect(await runsOf()).toEqual([
      { outcome: 'warn', durationMs: 20 },
      { outcome: 'success', durationMs: 1_500 },
      { outcome: 'fail', durationMs: 0 },
      { outcome: 'success', durationMs: null },
      { outcome: 'missed', durationMs: null },
      { outcome: 'overran', durationMs: null },
      { outcome: 'outage', durationMs: null },
    ])
  })

  it('are the newest ones, and those of each check alone', async () => {
    const [first, second] = [
      await addCheck(fixture, tenant, { name: 'a' }),
      await addCheck(fixture, tenant, { name: 'b' }),
    ]
    for (let index = 0; index < STRIP_RUNS + 5; index += 1) await addRun(first.key, NOW + index, 'success', index)
    await addFlipRow(first.key, NOW + 3, 'missed')
    await addRun(second.key, NOW, 'fail', 7)
    const { checks } = await survey()
    expect(checks[0]!.runs.map(({ durationMs }) => durationMs)).toEqual(
      Array.from({ length: STRIP_RUNS }, (_, index) => index + 5),
    )
    expect(checks[1]!.runs).toEqual([{ outcome: 'fail', durationMs: 7 }])
  })

  it('are looked for among a bounded number of pings', async () => {
    const check = await addCheck(fixture, tenant)
    await addRun(check.key, NOW, 'success', 1)
    await addRun(check.key, NOW + 1, 'success', 2)
    for (let index = 0; index < STRIP_PINGS - 1; index += 1) await addPingRow(fixture, check.key, NOW + 10 + index)
    expect(await runsOf()).toEqual([{ outcome: 'success', durationMs: 2 }])
    await addPingRow(fixture, check.key, NOW + 1_000)
    expect(await runsOf()).toEqual([])
  })
})

async function addRun(key: number, at: number, type: PingType, durationMs: number | null): Promise<void> {
  const id = await addPingRow(fixture, key, at, { type })
  await fixture.database.query('update pings set duration_ms = $2 where id = $1', [id, durationMs])
}

/** A flip whose id, like that of a ping, carries the moment after `at`: it was detected then. */
async function addFlipRow(key: number, at: number, reason: string): Promise<void> {
  await fixture.database.query(
    `insert into flips (id, check_key, at, detected_at, from_status, to_status, reason)
      values ($1, $2, to_timestamp($3 / 1000.0), to_timestamp($3 / 1000.0), 1, 2, $4)`,
    [newId(at + 0.5), key, at, reason],
  )
}
