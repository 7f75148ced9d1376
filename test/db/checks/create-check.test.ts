import { describe, expect, it } from 'vitest'
import { createCheck } from '../../../src/checks/create-check.ts'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { isUuid } from '../../../src/domain/ids.ts'
import { listFlips } from '../../support/lists.ts'
import {
  addCheck,
  addProject,
  addTenant,
  contextWithin,
  cronSpec,
  NOW,
  openTransaction,
  periodSpec,
  useFixture,
} from './fixture.ts'

const fixture = useFixture()
const { tenant } = fixture

const firstPage = { limit: 100, after: null }
const create = (given: object) => addCheck(fixture, tenant, given)

describe('a new check', () => {
  it('is stored as it is returned, with its first history entry', async () => {
    fixture.clock.time = NOW + 0.123
    const made = await create({ description: 'dumps the ledger', spec: periodSpec({ maxRuntimeSeconds: 60 }) })

    expect(made).toMatchObject({
      projectId: tenant.project,
      name: 'Nightly backup',
      slug: 'nightly-backup',
      description: 'dumps the ledger',
      managedBy: 'api',
      kubernetes: null,
      createdAt: NOW + 0.123,
      spec: { periodSeconds: 3_600, schedule: null, timeZone: null, graceSeconds: 300, maxRuntimeSeconds: 60 },
    })
    expect([made.id, made.publicId].every(isUuid)).toBe(true)
    expect(made.id[14]).toBe('7')
    expect(made.publicId[14]).toBe('4')
    expect(await getCheck(fixture.context, tenant, made.id)).toEqual({ ...made, kubernetesSuspend: null })
    expect((await listFlips(fixture.context, tenant, made.id, firstPage)).rows).toEqual([
      { id: expect.any(String), at: NOW, from: null, to: 'new', reason: 'created', pingId: null },
    ])
  })

  it('waits for its first ping: nothing is expected of it and no event is written', async () => {
    fixture.clock.time = NOW + 0.25
    const made = await create({})
    expect(made.state).toEqual({
      status: 'new',
      since: NOW,
      reason: 'created',
      lastPingAt: null,
      lastOutcome: null,
      consecutiveFailures: 0,
      consecutiveMisses: 0,
      pause: null,
      acknowledged: null,
      repeats: [],
      downNotifiedAt: null,
      reminders: 0,
      lastSuccessAt: null,
      lastDurationMs: null,
      lastStartAt: null,
      expectedAt: null,
      dueAt: null,
      runs: [],
      pingsTotal: 0,
      incidentSince: null,
      changes: [],
      notified: null,
      quietAt: null,
      hold: null,
      escalation: null,
      warnedAt: null,
    })
    const { rows } = await fixture.database.query(
      'select wake_at, stamped_at, (select count(*) from events) as events from check_states',
    )
    expect(rows).toEqual([{ wake_at: null, stamped_at: NOW + 0.25, events: 0 }])
  })

  it('may follow a cron schedule, in UTC unless a zone is given', async () => {
    const berlin = await create({ spec: cronSpec('0 2 * * *', { timeZone: 'Europe/Berlin' }) })
    const utc = await create({ spec: cronSpec('@hourly', { timeZone: null }) })
    expect((await getCheck(fixture.context, tenant, berlin.id)).spec).toMatchObject({
      periodSeconds: null,
      schedule: '0 2 * * *',
      timeZone: 'Europe/Berlin',
    })
    expect(utc.spec.timeZone).toBe('UTC')
    expect(await getCheck(fixture.context, tenant, utc.id)).toMatchObject(utc)
  })

  it('is rejected with a schedule that makes no sense, and nothing is stored', async () => {
    const spec = cronSpec('61 * * * *')
    await expect(create({ spec })).rejects.toMatchObject({ code: 'invalid_request', field: 'schedule' })
    const { rows } = await fixture.database.query('select count(*) as count from checks')
    expect(rows).toEqual([{ count: 0 }])
  })
})

describe('the project of a new check', () => {
  const into = (projectId: string, who = tenant) =>
    createCheck(fixture.context, who, { projectId, name: 'Backup', spec: periodSpec() })

  it('has to be one of the organization', async () => {
    const other = await addTenant(fixture)
    await expect(into(other.project)).rejects.toMatchObject({ code: 'not_found', message: 'project not found' })
    await expect(into('018f0000-0000-7000-8000-000000000000')).rejects.toMatchObject({ code: 'not_found' })
    await expect(into('no-uuid')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('has to be the one that the key is bound to', async () => {
    const second = await addProject(fixture, tenant)
    const bound = { ...tenant, projectId: second }
    await expect(
      createCheck(fixture.context, bound, { projectId: tenant.project, name: 'Backup', spec: periodSpec() }),
    ).rejects.toMatchObject({ code: 'not_found' })
    await expect(
      createCheck(fixture.context, bound, { projectId: second.toUpperCase(), name: 'Backup', spec: periodSpec() }),
    ).resolves.toMatchObject({ projectId: second })
  })

  it('cannot be removed while the check is made', async () => {
    const making = await openTransaction(fixture, (tx) =>
      createCheck(contextWithin(fixture, tx), tenant, {
        projectId: tenant.project,
        name: 'Backup',
        spec: periodSpec(),
      }),
    )
    const removing = making.commitBefore(() =>
      fixture.database.query('delete from projects where id = $1', [tenant.project]),
    )
    await expect(removing).rejects.toMatchObject({ code: '23503' })
  })

  it('is unknown when it is removed first', async () => {
    const removing = await openTransaction(fixture, (tx) =>
      tx.query('delete from projects where id = $1', [tenant.project]),
    )
    await expect(removing.commitBefore(() => into(tenant.project))).rejects.toMatchObject({ code: 'not_found' })
  })
})

describe('the slug of a new check', () => {
  const slugOf = async (given: object) => (await create(given)).slug

  it('is a conflict that names it, when it was given and is taken', async () => {
    expect(await slugOf({ slug: 'ledger_1' })).toBe('ledger_1')
    await expect(create({ slug: 'ledger_1' })).rejects.toMatchObject({
      code: 'slug_taken',
      message: expect.stringContaining('"ledger_1"'),
    })
  })

  it('gets the first free number, when it was derived and is taken', async () => {
    expect(await slugOf({ slug: 'nightly-backup-3' })).toBe('nightly-backup-3')
    expect(await slugOf({})).toBe('nightly-backup')
    expect(await slugOf({})).toBe('nightly-backup-2')
    expect(await slugOf({})).toBe('nightly-backup-4')
  })

  it('is found among a thousand that are taken', async () => {
    await create({ name: 'job' })
    await fixture.database.query(
      `insert into checks (id, public_id, project_id, name, slug, created_at)
       select gen_random_uuid(), gen_random_uuid(), $1, 'job', 'job-' || n, now() from generate_series(2, 1000) n`,
      [tenant.project],
    )
    expect(await slugOf({ name: 'job' })).toBe('job-1001')
  })

  it('is its own in each project', async () => {
    const project = await addProject(fixture, tenant)
    await create({ slug: 'ledger' })
    expect(
      (
        await createCheck(fixture.context, tenant, {
          projectId: project,
          name: 'x',
          slug: 'ledger',
          spec: periodSpec(),
        })
      ).slug,
    ).toBe('ledger')
  })

  it('differs for each of several checks that derive it at once', async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => create({})))
    expect(made.map(({ slug }) => slug).sort()).toEqual([
      'nightly-backup',
      'nightly-backup-2',
      'nightly-backup-3',
      'nightly-backup-4',
      'nightly-backup-5',
    ])
  })

  const takeSlug = () =>
    openTransaction(fixture, (tx) =>
      tx.query(
        `insert into checks (id, public_id, project_id, name, slug, created_at) values (gen_random_uuid(), gen_random_uuid(), $1, 'x', 'nightly-backup', now())`,
        [tenant.project],
      ),
    )

  it('is the next one, when another transaction takes the derived one meanwhile', async () => {
    const taking = await takeSlug()
    const made = taking.commitBefore(() => create({}))
    expect((await made).slug).toBe('nightly-backup-2')
  })

  it('is the derived one, when the other transaction that took it rolls back', async () => {
    const taking = await takeSlug()
    const made = taking.rollbackBefore(() => create({}))
    expect((await made).slug).toBe('nightly-backup')
  })

  it('is a conflict, when another transaction takes the given one meanwhile', async () => {
    const taking = await takeSlug()
    const made = taking.commitBefore(() => create({ slug: 'nightly-backup' }))
    await expect(made).rejects.toMatchObject({ code: 'slug_taken' })
  })
})
