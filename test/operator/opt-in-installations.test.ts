/** CronJobs that two installations watch, each with a database and a Lease of its own (docs/use/checks.md, "Two installations"). */

import { expect, it } from 'vitest'
import type { CronJobSettings } from '../../src/domain/cron-job-settings.ts'
import { cronJobsIn, LABELLED, WATCHED } from '../support/cron-jobs.ts'
import type { TestDatabase } from '../support/database.ts'
import { whenLeading } from '../support/operator.ts'
import { eventually } from '../support/until.ts'
import { idOf, useTwoInstallations } from './two-installations.ts'

const { cluster, one, two, place, ...installations } = useTwoInstallations()

/** Of all namespaces. */
const start = (testDatabase: TestDatabase, watch: CronJobSettings['watch']) =>
  installations.start(testDatabase, { namespaces: null, cronJobs: { ...LABELLED, watch } })

it('one creates each HeartbeatCheck, and the other, which would not watch its CronJob, leaves it', async () => {
  const cronJobs = cronJobsIn(cluster, place)
  await using first = await start(one, 'all')
  await using second = await start(two, 'labelled')
  await Promise.all([whenLeading(first), whenLeading(second)])
  const all = Array.from({ length: 10 }, (_, index) => `job-${index}`)
  await Promise.all(all.map((name) => cronJobs.create(name)))
  const installation = await idOf(one)
  await eventually('the first has them all', async () => {
    const checks = await place.list()
    return checks.length === all.length && checks.every(({ status }) => status?.installation === installation)
    // The second may have been the first to claim one: it deletes it, and the first creates it again.
  })
  // The second has seen all of them when it has created what it watches.
  await first.stop()
  await cronJobs.create('labelled', WATCHED)
  const theirs = await idOf(two)
  await eventually('the second works', async () => {
    const { status } = await place.get('labelled')
    return status?.installation === theirs
  })
  const checks = await place.list()
  expect(checks).toHaveLength(all.length + 1)
  expect(
    checks.filter(({ metadata }) => metadata.generation === 1 && metadata.deletionTimestamp === undefined),
  ).toHaveLength(all.length + 1)
})
