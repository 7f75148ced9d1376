/** A completion against a pause, over real pings. */

import { afterEach, beforeEach, expect, it } from 'vitest'
import { pauseCheck } from '../../../src/checks/pause-resume.ts'
import { LEFT, pingOf, usePings } from './fixture.ts'

const t = usePings()
beforeEach(() => t.clear())
afterEach(() => t.cleanUp())

const SPEC = { resumeOnPing: true }

it('a replica that knows the check as up sees the pause of another one, and resumes it', async () => {
  const replica = t.addReplica('a')
  const [check] = await t.addUp(replica, 1, { spec: SPEC })
  await pauseCheck(t.context, t.tenant(), check.id)
  expect(await replica.commit([pingOf(check)])).toEqual(LEFT)
  expect(await t.reasonsOf(check)).toEqual(['first_success', 'resumed', 'paused', 'first_success', 'created'])
  expect((await t.stateOf(check)).status).toBe('up')
})

it('of completions of one group and of two replicas the first one resumes, and each is stored', async () => {
  const [first, second] = [t.addReplica('a'), t.addReplica('b')]
  const [check] = await t.addUp(first, 1, { spec: SPEC })
  await pauseCheck(t.context, t.tenant(), check.id)
  const [of, fail] = [pingOf(check), pingOf(check, { type: 'fail', exitCode: 1 })]
  await Promise.all([first.commit([of, of]), second.commit([fail, of])])
  const reasons = await t.reasonsOf(check)
  expect(reasons.filter((reason) => reason === 'resumed')).toHaveLength(1)
  expect((await t.historyOf(check)).length).toBe(5)
})

it('a pause and a completion at the same time leave the check paused or up, never between', async () => {
  const replica = t.addReplica('a')
  const [check] = await t.addUp(replica, 1, { spec: SPEC })
  await Promise.all([pauseCheck(t.context, t.tenant(), check.id), replica.commit([pingOf(check)])])
  const [newest] = await t.reasonsOf(check)
  const { status } = await t.stateOf(check)
  expect(newest === 'paused' ? 'paused' : 'up').toBe(status)
})

it('a check that pings do not resume stays paused', async () => {
  const replica = t.addReplica('a')
  const [check] = await t.addUp(replica, 1)
  await pauseCheck(t.context, t.tenant(), check.id)
  await replica.commit([pingOf(check)])
  expect((await t.stateOf(check)).status).toBe('paused')
})
