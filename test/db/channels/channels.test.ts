import { describe, expect, it } from 'vitest'
import { listChannels } from '../../../src/channels/find-channels.ts'
import { listDeliveries } from '../../../src/channels/find-deliveries.ts'
import type { WebhookSettings } from '../../../src/channels/kinds/webhook/config.ts'
import { SECRET_OVERLAP_MS } from '../../../src/channels/kinds/webhook/signature.ts'
import { removeChannel } from '../../../src/channels/remove-channel.ts'
import { retryDelivery } from '../../../src/channels/retry-delivery.ts'
import { rotateSecret } from '../../../src/channels/rotate-secret.ts'
import { updateChannel } from '../../../src/channels/update-channel.ts'
import { pruneHistory } from '../../../src/checks/prune-history.ts'
import { MAX_CHANNELS } from '../../../src/domain/channel.ts'
import { removeProject } from '../../../src/tenancy/projects.ts'
import { untilWaiting } from '../../support/database.ts'
import { useEach } from '../../support/use.ts'
import { anOrganization, START, useOrganization } from '../auth/fixtures.ts'
import { aChannel, aDelivery, contextOf, manyDeliveries, openStored, readDeliveries } from './fixture.ts'

const { test, organization: acme } = useOrganization()
const context = useEach(() => contextOf(test.database))

describe('creating channels', () => {
  it('at the same time stops at the limit', async () => {
    const { id } = await aChannel(context, acme.id)
    await test.database.query(
      `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
        select gen_random_uuid(), organization_id, kind, name, sealed, sealed_with, event_types, created_at
        from channels, generate_series(1, $2) where id = $1`,
      [id, MAX_CHANNELS - 3],
    )
    const made = await Promise.allSettled(Array.from({ length: 5 }, () => aChannel(context, acme.id)))
    expect(made.filter(({ status }) => status === 'fulfilled')).toHaveLength(2)
    for (const result of made)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict' })
    expect((await listChannels(context, acme.caller, { limit: 1_000, after: null })).rows).toHaveLength(MAX_CHANNELS)
  })

  it('counts those of its own organization', async () => {
    const other = await anOrganization(test.database, 'other')
    await aChannel(context, other.id)
    await test.database.query(
      `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
        select gen_random_uuid(), organization_id, kind, name, sealed, sealed_with, event_types, created_at
        from channels, generate_series(1, 99)`,
    )
    await aChannel(context, acme.id)
    await expect(aChannel(context, other.id)).rejects.toMatchObject({ code: 'conflict' })
  })

  it('waits for the removal of its project, and is rejected', async () => {
    const projectId = await acme.addProject('going')
    let creating: Promise<unknown> = Promise.resolve()
    await test.database.transaction(async (tx) => {
      await tx.query('delete from projects where id = $1', [projectId])
      creating = aChannel(context, acme.id, { projectId }).catch((error) => error)
      await untilWaiting(test, 1)
    })
    expect(await creating).toMatchObject({ code: 'not_found', message: 'project not found' })
  })
})

describe('rotating a secret', () => {
  it('several times at once shows only secrets that were valid', async () => {
    const { id } = await aChannel(context, acme.id)
    const shown = await Promise.all(Array.from({ length: 5 }, () => rotateSecret(context, acme.caller, id)))
    const settings = (await openStored(context, id)) as WebhookSettings
    expect(settings.secrets).toHaveLength(2)
    expect(settings.secrets.map(({ expiresAt }) => expiresAt)).toEqual([null, START + SECRET_OVERLAP_MS])
    const [newest, before] = settings.secrets.map(({ secret }) => secret)
    expect(newest).not.toBe(before)
    const secrets = shown.map(({ secret }) => secret)
    expect(new Set(secrets).size).toBe(5)
    expect(secrets).toContain(newest)
    expect(secrets).toContain(before)
  })

  it('is not undone by an update at the same time', async () => {
    const { id } = await aChannel(context, acme.id)
    const config = { url: 'https://new.example/' }
    const [{ secret }] = await Promise.all([
      rotateSecret(context, acme.caller, id),
      updateChannel(context, acme.caller, id, { readConfig: () => config }),
      updateChannel(context, acme.caller, id, { name: 'Renamed' }),
    ])
    expect(await openStored(context, id)).toMatchObject({ url: config.url, secrets: [{ secret, expiresAt: null }, {}] })
  })
})

describe('muting a channel', () => {
  const mute = (id: string) => updateChannel(context, acme.caller, id, { muted: true })

  it('fails its pending deliveries, and no others', async () => {
    const { id } = await aChannel(context, acme.id)
    const { id: other } = await aChannel(context, acme.id)
    for (const status of ['pending', 'delivered', 'failed'] as const)
      await aDelivery(test.database, acme.id, { channelId: id, status })
    await aDelivery(test.database, acme.id, { channelId: id, type: 'channel.test' })
    await aDelivery(test.database, acme.id, { channelId: other })
    await mute(id)
    expect(await readDeliveries(test.database, id)).toMatchObject([
      { status: 2, due: false, error: 'the channel was muted' },
      { status: 1, error: 'before' },
      { status: 2, error: 'before' },
      { status: 0, due: true, error: 'before' },
    ])
    expect(await readDeliveries(test.database, other)).toMatchObject([{ status: 0, error: 'before' }])
  })

  it('fails more deliveries than one statement does', async () => {
    const { id } = await aChannel(context, acme.id)
    await manyDeliveries(test.database, acme.id, id, 10_001)
    await mute(id)
    const { rows } = await test.database.query<{ status: number; count: number }>(
      'select status, count(*) as count from deliveries group by status',
    )
    expect(rows).toEqual([{ status: 2, count: 10_001 }])
  })

  it('fails a delivery that is being claimed', async () => {
    const { id } = await aChannel(context, acme.id)
    const delivery = await aDelivery(test.database, acme.id, { channelId: id })
    let muting: Promise<unknown> = Promise.resolve()
    await test.database.transaction(async (tx) => {
      await tx.query(
        `update deliveries set attempts = 1, next_attempt_at = now() + interval '30 seconds' where id = $1`,
        [delivery],
      )
      muting = mute(id)
      await untilWaiting(test, 1)
    })
    await muting
    expect(await readDeliveries(test.database, id)).toMatchObject([{ status: 2, due: false }])
  })

  it('that is rejected fails no delivery', async () => {
    const { id } = await aChannel(context, acme.id)
    await aDelivery(test.database, acme.id, { channelId: id })
    const project = await (await anOrganization(test.database, 'other')).addProject('foreign')
    await expect(updateChannel(context, acme.caller, id, { muted: true, projectId: project })).rejects.toMatchObject({
      code: 'not_found',
    })
    expect(await readDeliveries(test.database, id)).toMatchObject([{ status: 0 }])
    const [channel] = (await listChannels(context, acme.caller, { limit: 1, after: null })).rows
    expect(channel).toMatchObject({ muted: false })
  })
})

describe('removing a channel', () => {
  it('removes its deliveries from the list at once, and from the table with the next pruning', async () => {
    const { id } = await aChannel(context, acme.id)
    const { id: other } = await aChannel(context, acme.id)
    await manyDeliveries(test.database, acme.id, id, 100)
    await aDelivery(test.database, acme.id, { channelId: id, status: 'delivered' })
    await aDelivery(test.database, acme.id, { channelId: other })
    await removeChannel(context, acme.caller, id)
    const listed = await listDeliveries(context, acme.caller, {}, { limit: 1_000, after: null })
    expect(listed.rows.map(({ channelId }) => channelId)).toEqual([other])
    const limits = { maxPings: 100, maxDays: 90, maxFlips: 100, auditMaxDays: 90 }
    await pruneHistory(context, limits, { table: 'deliveries', afterKey: 0 })
    expect(await readDeliveries(test.database, id)).toEqual([])
    expect(await readDeliveries(test.database, other)).toHaveLength(1)
  })

  it('and its project at the same time leaves no channel without project', async () => {
    const projectId = await acme.addProject('going')
    const { id } = await aChannel(context, acme.id)
    await Promise.allSettled([
      updateChannel(context, acme.caller, id, { projectId }),
      removeProject(context, acme.caller, projectId),
    ])
    const { rows } = await listChannels(context, acme.caller, { limit: 10, after: null })
    // Moved first, it went with the project; the project gone first, it stayed where it was.
    expect(rows.map(({ projectId }) => projectId)).toEqual(rows.length === 0 ? [] : [null])
  })
})

describe('a channel that moves to another project', () => {
  it('fails the pending deliveries of the first project: users of the new one may not see them', async () => {
    const { id } = await aChannel(context, acme.id)
    const [first, second] = [await acme.addProject('first'), await acme.addProject('second')]
    const add = (projectId: string) =>
      test.database.query(
        `insert into deliveries (event_id, channel_id, id, organization_id, project_id, type, next_attempt_at, give_up_at, created_at)
          values (gen_random_uuid(), $1, gen_random_uuid(), $2, $3, 'check.down', now(), now(), now())`,
        [id, acme.id, projectId],
      )
    await add(first)
    await add(second)
    await updateChannel(context, acme.caller, id, { projectId: second })
    const { rows } = await test.database.query<{ project_id: string; status: number; last_error: string | null }>(
      'select project_id, status, last_error from deliveries where channel_id = $1 order by status',
      [id],
    )
    expect(rows).toEqual([
      { project_id: second, status: 0, last_error: null },
      { project_id: first, status: 2, last_error: 'the channel serves another project now' },
    ])
    const { rows: failed } = await test.database.query<{ id: string }>('select id from deliveries where status = 2')
    await expect(retryDelivery(context, acme.caller, failed[0]!.id)).rejects.toMatchObject({ code: 'conflict' })
  })
})
