import { describe, expect, it } from 'vitest'
import { type CheckFilter, getCheck } from '../../../src/checks/find-checks.ts'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import type { Tenant } from '../../../src/domain/access.ts'
import { SHOWN_STATUSES, shownStatus } from '../../../src/domain/check.ts'
import { decodePlace, encodePlace } from '../../../src/domain/check-order.ts'
import { decodeCursor, encodeCursor, type Page } from '../../../src/domain/page.ts'
import type { CheckRecord } from '../../../src/store/checks/checks.ts'
import { HOUR } from '../../support/builders.ts'
import { listChecks, listFlips, listPings } from '../../support/lists.ts'
import { addCheck, addEachStatus, addPingRow, addProject, addTenant, NOW, ping, useFixture } from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture

const everything = { limit: 1_000, after: null }
const list = (filter: CheckFilter = {}, who: Tenant = tenant) =>
  listChecks(fixture.context, who, tenant.project, filter, everything)
const slugsOf = async (filter: CheckFilter) => (await list(filter)).rows.map(({ slug }) => slug).sort()
const pinged = (check: CheckRecord, type: 'success' | 'start' | 'fail' | 'log', at: number, given = {}) =>
  fixture.database.transaction((tx) => ping(tx, check, type, at, given))

/** Reads page after page, through the text of the cursor as a client does; `between` runs after each. */
async function readAll<Row, Place>(
  read: (after: Place | null) => Promise<Page<Row, Place>>,
  { encode, decode }: { encode: (place: Place) => string; decode: (text: string) => Place | null },
  between: (page: number) => Promise<unknown> = async () => {},
): Promise<Row[]> {
  const rows: Row[] = []
  let after: Place | null = null
  for (let page = 1; page < 100; page += 1) {
    const { rows: more, next }: Page<Row, Place> = await read(after)
    rows.push(...more)
    if (next === null) return rows
    after = decode(encode(next))
    await between(page)
  }
  throw new Error('the list has no end')
}

const PLACES = { encode: encodePlace, decode: decodePlace }
const CURSORS = { encode: encodeCursor, decode: decodeCursor }

describe('the list of a project', () => {
  it('holds its checks alone, oldest first, as get shows them', async () => {
    const checks = []
    for (const at of [NOW + 2, NOW + 0.002, NOW + 1]) {
      fixture.clock.time = at
      checks.push(await addCheck(fixture, tenant))
    }
    await addCheck(fixture, { ...tenant, project: await addProject(fixture, tenant) })
    const { rows, next } = await list()
    expect(rows.map(({ key }) => key)).toEqual([checks[1]!.key, checks[2]!.key, checks[0]!.key])
    expect(rows[0]).toEqual({
      ...(await getCheck(fixture.context, tenant, checks[1]!.id)),
      place: expect.anything(),
    })
    expect(next).toBeNull()
  })

  it('is that of an own project: others are unknown', async () => {
    const strangers = [
      await addTenant(fixture),
      { organizationId: tenant.organizationId, projectId: await addProject(fixture, tenant) },
    ]
    for (const who of strangers)
      await expect(list({}, who)).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
    await expect(listChecks(fixture.context, tenant, 'no-uuid', {}, everything)).rejects.toMatchObject({
      code: 'not_found',
    })
    expect((await list({}, { organizationId: tenant.organizationId, projectId: tenant.project })).rows).toEqual([])
  })

  it('comes in pages, none lost or doubled while checks come and go', async () => {
    const checks: CheckRecord[] = []
    // Three of each microsecond, so that ids decide as well.
    for (let i = 0; i < 12; i += 1) {
      fixture.clock.time = NOW + Math.floor(i / 3) / 1_000
      checks.push(await addCheck(fixture, tenant))
    }
    const expected = checks.map(({ id }) => id).sort()
    const read = await readAll(
      (after) => listChecks(fixture.context, tenant, tenant.project, {}, { limit: 5, after }),
      PLACES,
      async (page) => {
        fixture.clock.time = NOW - HOUR + page
        await addCheck(fixture, tenant)
        if (page === 1) await removeCheck(fixture.context, tenant, checks[0]!.id)
      },
    )
    expect(read.map(({ id }) => id).sort()).toEqual(expected)
    const exact = await readAll(
      (after) => listChecks(fixture.context, tenant, tenant.project, {}, { limit: 13, after }),
      PLACES,
    )
    expect(exact).toHaveLength(13)
  })
})

describe('the filters of a list', () => {
  it('status follows what is shown, late as well', async () => {
    const checks = await addEachStatus(fixture, tenant)
    for (const status of SHOWN_STATUSES) {
      expect(await slugsOf({ status: [status] })).toEqual([status])
      expect(shownStatus((await list({ status: [status] })).rows[0]!.state, fixture.clock.now())).toBe(status)
    }
    // A check that is up and waits for a run only is not late.
    await fixture.database.query('update check_states set expected_at = null, due_at = null where check_key = $1', [
      checks.late.key,
    ])
    expect(await slugsOf({ status: ['up'] })).toEqual(['late', 'up'])
    expect(await slugsOf({ status: ['late'] })).toEqual([])
  })

  it('slug is exact, q is part of the name or slug, and they join', async () => {
    await addCheck(fixture, tenant, { name: 'Ledger 100%', slug: 'ledger_a' })
    await addCheck(fixture, tenant, { name: 'Über-Bücher \\o/', slug: 'ledgerxa' })
    await addCheck(fixture, tenant, { name: 'other', slug: 'other' })
    expect(await slugsOf({ slug: 'ledger_a' })).toEqual(['ledger_a'])
    expect(await slugsOf({ slug: 'ledger' })).toEqual([])
    expect(await slugsOf({ q: 'LEDGER' })).toEqual(['ledger_a', 'ledgerxa'])
    expect(await slugsOf({ q: 'r_a' })).toEqual(['ledger_a'])
    expect(await slugsOf({ q: '0%' })).toEqual(['ledger_a'])
    expect(await slugsOf({ q: '%' })).toEqual(['ledger_a'])
    expect(await slugsOf({ q: '\\o' })).toEqual(['ledgerxa'])
    expect(await slugsOf({ q: 'üBER' })).toEqual(['ledgerxa'])
    expect(await slugsOf({ q: `'; drop table checks` })).toEqual([])
    expect(await slugsOf({ q: 'ledger', slug: 'other' })).toEqual([])
    expect(await slugsOf({ q: 'ledger', status: ['up'] })).toEqual([])
  })

  it('hold for every page', async () => {
    for (let i = 0; i < 9; i += 1) await addCheck(fixture, tenant, { name: i % 2 === 0 ? 'even' : 'odd' })
    const read = await readAll(
      (after) => listChecks(fixture.context, tenant, tenant.project, { q: 'even' }, { limit: 2, after }),
      PLACES,
    )
    expect(read.map(({ name }) => name)).toEqual(Array(5).fill('even'))
  })
})

describe('the history of pings', () => {
  it('shows each ping as it was sent, newest first', async () => {
    const check = await addCheck(fixture, tenant)
    const runId = '6f1c2a34-5b6d-4e7f-8a9b-0c1d2e3f4a5b'
    const body = Buffer.from([0x00, 0xff, 0x41])
    await pinged(check, 'start', NOW + 500, { runId })
    await pinged(check, 'success', NOW + 1_500.25, { runId })
    await pinged(check, 'fail', NOW + 2_000, { body })
    await pinged(check, 'log', NOW + 3_000, { body: Buffer.from('hi') })
    const { rows, next } = await listPings(fixture.context, tenant, check.id, everything)
    expect(next).toBeNull()
    expect(rows.map(({ id, isBodyTruncated, ...ping }) => ping)).toEqual([
      {
        type: 'log',
        exitCode: null,
        durationMs: null,
        runId: null,
        source: 'http',
        createdAt: NOW + 3_000,
        body: Buffer.from('hi'),
      },
      { type: 'fail', exitCode: null, durationMs: null, runId: null, source: 'http', createdAt: NOW + 2_000, body },
      { type: 'success', exitCode: 0, durationMs: 1_000, runId, source: 'http', createdAt: NOW + 1_500.25, body: null },
      { type: 'start', exitCode: null, durationMs: null, runId, source: 'http', createdAt: NOW + 500, body: null },
    ])
  })

  it('comes in pages, none lost or doubled while pings arrive', async () => {
    const check = await addCheck(fixture, tenant)
    const other = await addCheck(fixture, tenant)
    const ids: string[] = []
    for (let i = 0; i < 10; i += 1) {
      ids.push(await addPingRow(fixture, check.key, NOW + Math.floor(i / 4)))
      await addPingRow(fixture, other.key, NOW + i)
    }
    const read = await readAll(
      (after) => listPings(fixture.context, tenant, check.id, { limit: 3, after }),
      CURSORS,
      (page) => addPingRow(fixture, check.key, NOW + 1_000 + page),
    )
    expect(read.map(({ id }) => id)).toEqual(ids.sort().reverse())
  })
})

describe('the history of flips', () => {
  it('lists each change of status, newest first, with the ping that made it', async () => {
    const check = await addCheck(fixture, tenant)
    await pinged(check, 'success', NOW + 1_000)
    await pinged(check, 'fail', NOW + 2_000)
    const pings = (await listPings(fixture.context, tenant, check.id, everything)).rows
    const { rows } = await listFlips(fixture.context, tenant, check.id, everything)
    expect(rows).toEqual([
      { id: expect.any(String), at: NOW + 2_000, from: 'up', to: 'down', reason: 'failed', pingId: pings[0]!.id },
      { id: expect.any(String), at: NOW + 1_000, from: 'new', to: 'up', reason: 'first_success', pingId: pings[1]!.id },
      { id: expect.any(String), at: NOW, from: null, to: 'new', reason: 'created', pingId: null },
    ])
    const paged = await readAll((after) => listFlips(fixture.context, tenant, check.id, { limit: 1, after }), CURSORS)
    expect(paged).toEqual(rows)
  })
})
