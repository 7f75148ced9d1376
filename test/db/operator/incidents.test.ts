/** An incident that check.down opened is closed by the first change to up, whatever happened to the check in between. */

import { expect, it } from 'vitest'
import { pauseCheck, resumeCheck } from '../../../src/checks/pause-resume.ts'
import type { StoredCheck } from '../../../src/store/checks/checks.ts'
import { MINUTE } from '../../support/builders.ts'
import { periodSpec } from '../checks/fixture.ts'
import { useOperatorFixture } from './fixture.ts'

const t = useOperatorFixture()
let count = 0

/** A declared check and what can happen to it; each step takes a minute. */
function createStory() {
  count += 1
  const resource = { cluster: 'default', namespace: 'payments', name: `job-${count}` }
  const given = { resource, spec: periodSpec(), suspend: null }
  const declare = (changed: Partial<Parameters<typeof t.declare>[0]> = {}) => t.declare({ ...given, ...changed })
  const read = async () => (await t.read(resource)) as StoredCheck
  const steps = {
    success: async () => t.pinged(await read(), 'success', t.clock.time),
    fail: async () => t.pinged(await read(), 'fail', t.clock.time),
    pause: async () => pauseCheck(t.context, t.tenant, (await read()).id),
    resume: async () => resumeCheck(t.context, t.tenant, (await read()).id),
    update: () => declare({ spec: periodSpec({ graceSeconds: 7 + count }) }),
    async suspend() {
      await declare({ suspend: true })
      await declare({ suspend: false })
      await declare()
    },
    async recreate() {
      await t.retire('Delete', resource)
      await declare()
    },
    async adopt() {
      const { id } = await read()
      await t.retire('Retain', resource)
      await declare({ adoptId: id })
    },
  }
  return {
    async do(...kinds: (keyof typeof steps)[]) {
      for (const kind of kinds) {
        t.clock.time += MINUTE
        await steps[kind]()
      }
    },
    declare,
    read,
    async sent() {
      const { key } = await read()
      const { rows } = await t.database.query<{ type: string; data: { down_for_seconds: number | null } }>(
        'select type, data from events where check_key = $1 order by id',
        [key],
      )
      return rows
    },
  }
}

const BETWEEN = ['pause', 'resume', 'update', 'suspend', 'recreate', 'adopt', 'fail'] as const

it('two of pause, resume, update, suspension, re-creation, adoption and failure, in any order', async () => {
  for (const first of BETWEEN) {
    for (const second of BETWEEN) {
      const story = createStory()
      await story.declare()
      await story.do('success', 'fail', first, second, 'resume', 'success')
      const changes = (await story.sent()).map(({ type }) => type).filter((type) => /down|up/.test(type))
      expect(changes.at(0), `${first}, ${second}`).toBe('check.down')
      expect(changes.slice(changes.indexOf('check.up')), `${first}, ${second}`).toEqual(['check.up'])
      await story.do('pause', 'resume', 'success')
      expect((await story.sent()).filter(({ type }) => type === 'check.up')).toHaveLength(1)
    }
  }
})

it('the time that it was down is counted from its check.down, also by a check that was deleted in between', async () => {
  const story = createStory()
  await story.declare()
  await story.do('success', 'fail', 'pause', 'recreate', 'success')
  const [down, ...rest] = await story.sent()
  expect(down!.type).toBe('check.down')
  expect(rest.at(-1)).toMatchObject({ type: 'check.up', data: { down_for_seconds: 180 } })
  expect((await story.read()).state).toMatchObject({ status: 'up', incidentSince: null, pingsTotal: 3 })
})

it('a channel that was notified after a while is sent the end, also of a check that was deleted in between', async () => {
  const { rows } = await t.database.query<{ id: string }>(
    `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, after_seconds, created_at)
      select gen_random_uuid(), organization_id, 'slack', 'Second', '\\x00', '\\x00', '{check.down,check.up}', after, now()
      from projects cross join (values (60), (120)) v (after) where id = $1 returning id`,
    [t.tenant.project],
  )
  const story = createStory()
  await story.declare()
  await story.do('success', 'fail')
  const { key } = await story.read()
  await t.database.query(`update check_states set escalation = '{"upTo": 60000, "dueAt": null}' where check_key = $1`, [
    key,
  ])
  await story.do('pause', 'recreate', 'success')
  const its = async (id: string) =>
    (await t.database.query('select type, reason from deliveries where channel_id = $1 and check_key = $2', [id, key]))
      .rows
  expect(await its(rows[0]!.id)).toEqual([{ type: 'check.up', reason: null }])
  expect(await its(rows[1]!.id)).toEqual([{ type: 'check.up', reason: 'escalation' }])
})
