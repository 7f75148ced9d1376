/** What is seen of the Jobs where each namespace has a watch of its own, and when that changes. */

import { describe, expect, it } from 'vitest'
import { follow, LABELLED } from '../support/cron-jobs.ts'
import { eventually } from '../support/until.ts'
import { openWorkplace, type Workplace } from '../support/workplace.ts'
import { useCronJobs } from './cron-jobs.ts'
import { useScene } from './scene.ts'

const t = useScene({ resyncMs: 600_000, cronJobs: LABELLED })

/** A HeartbeatCheck that follows a CronJob; resolves with the id of its check. */
async function makeFollowed(place: Workplace, name: string): Promise<string> {
  await useCronJobs({ cluster: t.cluster, place }).create(name, { schedule: '@hourly' })
  return (await place.makeReady(name, follow(name))).status!.checkId!
}

/** Its run is due now. */
async function makeDue(id: string): Promise<number> {
  const { rows } = await t.sql(
    `update check_states set expected_at = now() - interval '5 minutes', due_at = now(), wake_at = now()
      where check_key = (select key from checks where id = $1) returning due_at as at`,
    id,
  )
  return (rows as { at: number }[])[0]!.at
}

const areaOf = async (id: string) => {
  const { rows } = await t.sql(
    'select job_area as area from check_states s join checks c on c.key = s.check_key where c.id = $1',
    id,
  )
  return (rows as { area: string }[])[0]!.area
}
const seenAreas = async () =>
  ((await t.sql('select area from seen_areas order by area')).rows as { area: string }[]).map(({ area }) => area)
const flipsOf = async (id: string) => {
  const { rows } = await t.sql(
    `select reason, at from flips f join checks c on c.key = f.check_key where c.id = $1 and reason <> 'created' order by f.id`,
    id,
  )
  return rows
}

it('a namespace that may not be read keeps no other waiting, and is evaluated when the right is back', async () => {
  const [shop, bank] = [t.place, await openWorkplace(t.cluster)]
  const [ofShop, ofBank] = [await makeFollowed(shop, 'nightly'), await makeFollowed(bank, 'nightly')]
  await t.restart({ namespaces: [shop.name, bank.name] })
  await eventually('both are seen', async () => expect(await seenAreas()).toHaveLength(2) ?? true)
  expect([await areaOf(ofShop), await areaOf(ofBank)]).toEqual([`default/${shop.name}`, `default/${bank.name}`])
  const grant = t.cluster.server.forbid((path) => path === `/apis/batch/v1/namespaces/${bank.name}/jobs`)
  await bank.stalled('nightly', 'SourceForbidden')
  const dueAt = await makeDue(ofBank)
  await makeDue(ofShop)
  await shop.inState('nightly', 'down')
  expect(await flipsOf(ofBank)).toEqual([])
  grant()
  await bank.inState('nightly', 'down')
  expect(await flipsOf(ofBank)).toEqual([{ reason: 'missed', at: dueAt }])
})

it('a namespace whose HeartbeatChecks may not be listed keeps no other waiting, and is caught up with when they may', async () => {
  const [shop, bank] = [t.place, await openWorkplace(t.cluster)]
  await t.restart()
  const [ofShop, ofBank] = [await makeFollowed(shop, 'weekly'), await makeFollowed(bank, 'weekly')]
  // As of a namespace that was deleted, or has lost its Role.
  const grant = t.cluster.server.forbid(
    (path) => path === `/apis/heartbeat-operator.io/v1/namespaces/${bank.name}/heartbeatchecks`,
  )
  await t.restart({ namespaces: [shop.name, bank.name] })
  await makeDue(ofShop)
  const dueAt = await makeDue(ofBank)
  await shop.inState('weekly', 'down')
  expect(await flipsOf(ofBank)).toEqual([])
  grant()
  await bank.inState('weekly', 'down')
  expect(await flipsOf(ofBank)).toEqual([{ reason: 'missed', at: dueAt }])
})

it('a namespace whose Jobs may not be read from the beginning is listed since it is watched, for the alert', async () => {
  const place = await openWorkplace(t.cluster)
  t.cluster.server.forbid((path) => path === `/apis/batch/v1/namespaces/${place.name}/jobs`)
  await useCronJobs({ cluster: t.cluster, place }).create('nightly', { schedule: '@hourly' })
  const from = Date.now()
  await t.restart({ namespaces: [place.name] })
  await place.apply('nightly', follow('nightly'))
  await place.stalled('nightly', 'SourceForbidden')
  const { seen, since } = await eventually('it is listed', async () => {
    const { rows } = await t.sql(
      'select seen_at as seen, watched_since as since from seen_areas where area = $1',
      `default/${place.name}`,
    )
    return (rows as { seen: number; since: number }[])[0] ?? null
  })
  expect(seen).toBe(0)
  expect(Math.abs(since - from)).toBeLessThan(60_000)
})

it('where the watches are changed, each check is declared in its new area, and what is overdue stays so', async () => {
  await t.restart()
  const id = await makeFollowed(t.place, 'moved')
  for (const [namespaces, area] of [
    [[t.place.name], `default/${t.place.name}`],
    [null, 'default'],
  ] as const) {
    const dueAt = await makeDue(id)
    await t.restart({ namespaces })
    await eventually('it is missed', async () => {
      expect((await flipsOf(id)).at(-1)).toEqual({ reason: 'missed', at: dueAt })
      return true
    })
    expect(await areaOf(id)).toBe(area)
    await eventually('the areas of before are forgotten', async () => expect(await seenAreas()).toEqual([area]) ?? true)
    await t.sql(`update check_states set status = 1, since = now() where status = 2`)
  }
})

describe('a namespace that was deleted, or has lost its Role', () => {
  const listOf = (name: string) => `/apis/heartbeat-operator.io/v1/namespaces/${name}/heartbeatchecks`

  async function optIn(place: Workplace, name: string): Promise<void> {
    const cronJobs = useCronJobs({ cluster: t.cluster, place })
    await cronJobs.create(name, { schedule: '@hourly' })
    await cronJobs.change(name, { metadata: { labels: { 'heartbeat-operator.io/watch': 'true' } } })
  }

  it('keeps no other from opting in, nor the process from becoming ready, nor lost resources from being found', async () => {
    const [shop, gone] = [await openWorkplace(t.cluster), await openWorkplace(t.cluster)]
    await t.restart()
    const lost = (await shop.makeReady('lost')).status!.checkId!
    const unseen = (await gone.makeReady('unseen')).status!.checkId!
    await t.operator().stop()
    await shop.forceAway('lost')
    await gone.forceAway('unseen')
    const grant = t.cluster.server.forbid((path) => path === listOf(gone.name))
    await t.restart({ namespaces: [shop.name, gone.name], orphanMs: 0 })
    await eventually('it is ready', t.operator().operator.hasSynced)
    await optIn(shop, 'opted-in')
    await shop.ready('opted-in')
    const statusOf = async (id: string) => (await t.app.call('GET', `/checks/${id}`)).status
    await eventually('the lost one is removed', async () => (await statusOf(lost)) === 404)
    // Never on the evidence of a list that there is not.
    expect(await statusOf(unseen)).toBe(200)
    // It is caught up with when it may be read.
    await optIn(gone, 'late')
    grant()
    await gone.ready('late')
    await eventually('the unseen one is removed', async () => (await statusOf(unseen)) === 404)
  })
})
