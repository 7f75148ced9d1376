/** Which runs of Jobs are open, and until when each may last. */

import { describe, expect, it } from 'vitest'
import { findRecorded } from '../../../src/checks/jobs/find-recorded.ts'
import type { JobEntry } from '../../../src/checks/jobs/job-report.ts'
import { recordJobs } from '../../../src/checks/jobs/record-jobs.ts'
import { HOUR, MINUTE } from '../../support/builders.ts'
import { NOW, useFixture } from '../checks/fixture.ts'
import { addFollowed, type Followed, pingsOf, reportOf, startAt, stateOf, successAt } from './fixture.ts'

const t = useFixture()

it('a run that was over time when its check was created has no deadline, and one that was not has its own', async () => {
  const check = await addFollowed(t, 'nightly', { agoMs: MINUTE })
  const [old, recent] = [startAt(NOW - 5 * HOUR), startAt(NOW - 20 * MINUTE)]
  await recordJobs(t.context, [reportOf(check, [old]), reportOf(check, [recent])])
  const { runs } = await stateOf(t, check.key)
  expect(runs).toMatchObject([{ deadlineAt: null }, { deadlineAt: recent.at + 30 * MINUTE }])
})

describe('a run that is stored as started, and has no end', () => {
  const RUN = '0190b8a0-0000-7000-8000-000000000001'
  const start = startAt(NOW - 20 * MINUTE)
  const again = startAt(NOW - 5 * MINUTE, start.at)
  const suspend = (at = NOW - 10 * MINUTE): JobEntry => ({ type: 'suspend', at })
  const record = (check: Followed, ...entries: JobEntry[]) =>
    recordJobs(t.context, [reportOf(check, entries, { runId: RUN })])
  const missing = async ({ resource }: Followed) => {
    const [recorded] = await findRecorded(t.context, [{ resource, runId: RUN, at: NOW }])
    return (['start', 'suspend', 'success'] as const).filter((type) => !recorded!.has(type))
  }
  const runsOf = async ({ key }: Followed) => (await stateOf(t, key)).runs
  const addStarted = async () => {
    const check = await addFollowed(t, 'nightly', { agoMs: HOUR })
    expect(await missing(check)).toEqual(['start', 'success'])
    expect(await record(check, start)).toEqual(['recorded'])
    expect(await missing(check)).toEqual(['suspend', 'success'])
    return check
  }

  it('is closed without a record while its Job is suspended, and opened by its next start', async () => {
    const check = await addStarted()
    expect(await record(check, suspend())).toEqual(['recorded'])
    expect(await runsOf(check)).toBeNull()
    expect(await missing(check)).toEqual(['start', 'success'])
    expect(await record(check, suspend())).toEqual(['repeated'])
    expect(await record(check, again)).toEqual(['recorded'])
    expect(await runsOf(check)).toMatchObject([{ startedAt: again.at, deadlineAt: again.at + 30 * MINUTE }])
    expect(await missing(check)).toEqual(['suspend', 'success'])
    expect(await record(check, again)).toEqual(['repeated'])
    expect((await pingsOf(t, check.key)).map(({ type }) => type)).toEqual(['start'])
    expect(await stateOf(t, check.key)).toMatchObject({ pingsTotal: 1 })
  })

  it.each<[string, JobEntry[][]]>([
    ['together', [[suspend()], [again]]],
    ['of which the suspension was not seen', [[again]]],
    ['in one report', [[start, suspend(), again]]],
  ])('is open since its last start by reports %s', async (_, reports) => {
    const check = await addStarted()
    await recordJobs(
      t.context,
      reports.map((entries) => reportOf(check, entries, { runId: RUN })),
    )
    expect(await runsOf(check)).toMatchObject([{ startedAt: again.at }])
    await record(check, successAt(NOW - MINUTE))
    expect(await runsOf(check)).toBeNull()
    expect(await record(check, again, suspend(NOW))).toEqual(['repeated'])
    expect(await missing(check)).toEqual([])
  })

  it('is closed by a group that opens it again and then suspends it', async () => {
    const check = await addStarted()
    await record(check, suspend())
    expect(await record(check, again, suspend(NOW))).toEqual(['recorded'])
    expect(await runsOf(check)).toBeNull()
    expect((await pingsOf(t, check.key)).map(({ type }) => type)).toEqual(['start'])
  })

  it('is opened again where its check was deleted and created again', async () => {
    const check = await addStarted()
    await t.database.query('update check_states set runs = null where check_key = $1', [check.key])
    expect(await missing(check)).toEqual(['start', 'success'])
    await record(check, start)
    expect(await runsOf(check)).toMatchObject([{ id: RUN, startedAt: start.at }])
    expect(await pingsOf(t, check.key)).toHaveLength(1)
  })
})
