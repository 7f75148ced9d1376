/** A restart of the controller in an unchanged cluster writes nothing to the API server. */

import { describe, expect, it } from 'vitest'
import { toTime } from '../../src/kubernetes/objects.ts'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { readMetric, whenLeading } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { succeeded, useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ resyncMs: 600_000, cronJobs: LABELLED })
const cronJobs = useCronJobs(t)
const NAMES = Array.from({ length: 12 }, (_, index) => `nightly-${index}`)

/** Leases are renewed, and rights asked for, all the time. */
const writes = () =>
  t.cluster.server.requests.filter(
    ({ method, path, headers }) =>
      method !== 'GET' && headers['user-agent'] !== 'test' && !/\/leases|reviews$/.test(path),
  )

/** How many checks have a flip that is not reported as an Event. */
async function unreported(): Promise<number> {
  const { rows } = await t.sql(
    `select from checks c left join reported_flips r on r.check_key = c.key
      where (select id from flips f where f.check_key = c.key order by id desc limit 1) is distinct from r.flip_id`,
  )
  return rows.length
}

describe('a restart', () => {
  it('writes nothing where nothing has changed', async () => {
    const start = Date.now() - 7_200_000
    await t.operator().stop()
    for (const name of NAMES) {
      const { uid } = await cronJobs.create(name, { schedule: '@hourly' })
      await cronJobs.createJob(`${name}-1`, uid, { status: succeeded(toTime(start), toTime(start + 60_000)) })
      await t.place.apply(name, follow(name))
    }
    await t.restart()
    await Promise.all(NAMES.map((name) => t.place.inState(name, 'up')))
    await eventually('all flips are reported', async () => (await unreported()) === 0)
    const before = writes().length
    await t.restart()
    await whenLeading(t.operator())
    await eventually('all are reconciled', async () => {
      const reconciled = await readMetric(t.operator(), 'controller_runtime_reconcile_total', {
        result: 'requeue_after',
      })
      return reconciled >= NAMES.length
    })
    expect(
      writes()
        .slice(before)
        .map(({ method, path }) => `${method} ${path}`),
    ).toEqual([])
  })
})
