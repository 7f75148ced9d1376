/** Two replicas of the api that evaluate deadlines while no controller runs: a run that the operator cannot have seen is not missed. */

import { expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { cronJobsIn, follow } from '../support/cron-jobs.ts'
import { startRoleStage } from '../support/role-stage.ts'
import { API_KEY, PROJECT_ID, type Service, spawnService, startService } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'

const HOURLY = { schedule: '0 * * * *', suspend: false }
const OF_FOLLOWED = 'where check_key = (select key from checks where kubernetes_name is not null)'
/** A millisecond after all that was seen. */
const UNSEEN = "(select max(seen_at) from seen_areas) + interval '1 millisecond'"

/** How many deadlines this replica has found. */
async function foundBy({ ops }: Service): Promise<number> {
  const text = await (await fetch(`${ops}/metrics`)).text()
  return Number(/^heartbeat_deadline_detection_seconds_count (\d+)$/m.exec(text)![1])
}

it('a deadline of a check that follows a CronJob waits for the controller, whichever replica evaluates, and passes once', async () => {
  await using stage = await startRoleStage()
  const query = async (sql: string) => (await stage.testDatabase.database.query<{ reason: string }>(sql)).rows
  const KUBECONFIG = await stage.writeKubeconfig(stage.cluster.server.url)
  const startController = () => spawnService(stage.environmentOf({ ROLE: 'controller', KUBECONFIG }))
  await using first = await startService(stage.environmentOf({ ROLE: 'api' }))
  await using second = await startService(stage.environmentOf({ ROLE: 'api' }))
  await cronJobsIn(stage.cluster, stage.place).create('nightly', {}, HOURLY)
  {
    await using controller = startController()
    await stage.place.makeReady('nightly', follow('nightly'))
    const seen = 'select from seen_areas where seen_at > to_timestamp(0)'
    await eventually('its Jobs are seen', async () => (await query(seen)).length > 0)
    await controller.stop()
  }
  await query(
    `update check_states set expected_at = ${UNSEEN} - interval '300 s', due_at = ${UNSEEN}, wake_at = ${UNSEEN} ${OF_FOLLOWED}`,
  )

  // Meanwhile both find deadlines of jobs that ping.
  const { post } = await createApiClient(first.api, API_KEY)
  await eventually('both have found deadlines', async () => {
    const spec = { period_seconds: 3_600, grace_seconds: 0, armed: true }
    const { body } = await post('/checks', { project_id: PROJECT_ID, name: 'Pings', ...spec })
    const ofPinged = `where check_key = (select key from checks where id = '${body.id}')`
    await query(`update check_states set expected_at = now(), due_at = now(), wake_at = now() ${ofPinged}`)
    const missed = `select from flips ${ofPinged} and reason = 'missed'`
    await eventually('this one is found', async () => (await query(missed)).length > 0)
    return (await foundBy(first)) > 0 && (await foundBy(second)) > 0
  })
  const flips = () => query(`select reason from flips ${OF_FOLLOWED} and reason <> 'created'`)
  expect(await flips()).toEqual([])

  await using controller = startController()
  await eventually('it is missed', async () => (await flips()).length > 0)
  expect(await flips()).toEqual([{ reason: 'missed' }])
  expect((await controller.stop()).status).toBe(0)
})
