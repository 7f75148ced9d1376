import { beforeEach, describe, expect, it } from 'vitest'
import { type ChannelDeclaration, declareChannel, retireChannel } from '../../../src/channels/declare-channel.ts'
import { createSealer } from '../../../src/channels/seal.ts'
import { STANDARD_EVENT_TYPES } from '../../../src/domain/event.ts'
import { saveSealingKey } from '../../../src/store/leases/sealing-key.ts'
import { lockOrganization } from '../../../src/store/tenancy/organizations.ts'
import { untilWaiting } from '../../support/database.ts'
import { useEach } from '../../support/use.ts'
import { useOrganization } from '../auth/fixtures.ts'
import { contextOf, KEY, openStored } from './fixture.ts'

const { test, organization: acme } = useOrganization()
const context = useEach(() => contextOf(test.database))
const RESOURCE = { cluster: 'default', namespace: 'payments', name: 'ops' }
let projectId: string

beforeEach(async () => {
  projectId = await acme.addProject('payments')
  await saveSealingKey(test.database, createSealer(KEY).publicKey)
})

const declare = (given: Partial<ChannelDeclaration> = {}) =>
  declareChannel(context, {
    ...{ resource: RESOURCE, projectId, kind: 'slack', name: 'ops', config: { url: 'https://example.com/1' } },
    ...{ events: STANDARD_EVENT_TYPES, muted: false, afterSeconds: 0, version: '1', isRevivable: true },
    ...given,
  })

const read = async (text: string) => (await test.database.query(text)).rows
const channels = () => read('select id, name, kind from channels order by name')
const acts = () => read('select action from audit_log order by at')

/** From now on no version is stored that has this name: the statement after the change of the channel fails. */
const refuse = (version: string) =>
  test.database.query(`alter table declared_channels add constraint refused check (version not like '%/${version}')`)
const accept = () => test.database.query('alter table declared_channels drop constraint refused')

describe('declaring a channel', () => {
  it('writes nothing when its version cannot be saved, and all of it at the next try', async () => {
    await refuse('1')
    await expect(declare()).rejects.toThrow('refused')
    expect(await channels()).toEqual([])
    await accept()
    const { channelId } = await declare()
    await refuse('2')
    const second = { name: 'second', config: { url: 'https://example.com/2' }, version: '2' }
    await expect(declare(second)).rejects.toThrow('refused')
    expect(await channels()).toEqual([{ id: channelId, name: 'ops', kind: 'slack' }])
    expect(await openStored(context, channelId)).toMatchObject({ url: 'https://example.com/1' })
    expect(await acts()).toEqual([{ action: 'channel.created' }])
    // The first leader's declaration is as it was.
    expect(await declare()).toEqual({ channelId, change: 'unchanged' })
    await accept()
    expect(await declare(second)).toEqual({ channelId, change: 'updated' })
    expect(await openStored(context, channelId)).toMatchObject({ url: 'https://example.com/2' })
  })

  it('twice at once creates one channel', async () => {
    const both: ReturnType<typeof declare>[] = []
    await test.database.transaction(async (tx) => {
      await lockOrganization(tx, acme.id)
      both.push(declare(), declare())
      await untilWaiting(test, 2)
    })
    expect((await Promise.all(both)).map(({ change }) => change).sort()).toEqual(['created', 'unchanged'])
    expect(await channels()).toHaveLength(1)
  })

  it('as another kind keeps the present one when that cannot be created', async () => {
    const { channelId } = await declare()
    const webhook = { kind: 'webhook', version: '2' } as const
    await refuse('2')
    await expect(declare(webhook)).rejects.toThrow('refused')
    expect(await channels()).toMatchObject([{ id: channelId, kind: 'slack' }])
    await accept()
    expect(await declare(webhook)).toEqual({ channelId, change: 'created' })
    expect(await acts()).toMatchObject(
      ['channel.created', 'channel.removed', 'channel.created'].map((action) => ({ action })),
    )
  })

  it('while it is retired revives it', async () => {
    const { channelId } = await declare()
    const calls: Promise<unknown>[] = []
    await test.database.transaction(async (tx) => {
      await tx.query('select from channels for update')
      calls.push(retireChannel(context, RESOURCE))
      await untilWaiting(test, 1)
      calls.push(declare({ version: '2' }))
      await untilWaiting(test, 2)
    })
    expect(await Promise.all(calls)).toEqual([undefined, { channelId, change: 'revived' }])
    expect(await channels()).toHaveLength(1)
  })
})
