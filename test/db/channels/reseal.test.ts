import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { ChannelContext } from '../../../src/channels/context.ts'
import { resealChannels } from '../../../src/channels/reseal.ts'
import { createPublicSealer, createSealer, type OpeningSealer } from '../../../src/channels/seal.ts'
import { updateChannel } from '../../../src/channels/update-channel.ts'
import { INSTALLATION_CHANNEL_ID } from '../../../src/domain/channel.ts'
import { findSealingKey, saveSealingKey } from '../../../src/store/leases/sealing-key.ts'
import { useEach } from '../../support/use.ts'
import { useOrganization } from '../auth/fixtures.ts'
import { aChannel, contextOf, KEY, openStored, readSealed } from './fixture.ts'

const NEW_KEY = Buffer.alloc(32, 8)
const LOST_KEY = Buffer.alloc(32, 9)

const { test, organization: acme } = useOrganization()
const before = useEach(() => contextOf(test.database))
/** After SECRET_KEY was replaced. */
const after = useEach(() => contextOf(test.database, { sealer: createSealer(NEW_KEY, [KEY]) }))
const ofNewKey = () => contextOf(test.database, { sealer: createSealer(NEW_KEY) })

describe('resealing', () => {
  it('seals every channel under the current key, once', async () => {
    const made = await Promise.all(
      ['a', 'b', 'c'].map((host) =>
        aChannel(before, acme.id, { kind: 'slack', config: { url: `https://${host}.example/x` } }),
      ),
    )
    await aChannel(after, acme.id)
    await test.database.query(
      `insert into channels (id, kind, name, event_types, created_at) values ($1, 'alertmanager', 'x', '{}', now())`,
      [INSTALLATION_CHANNEL_ID],
    )
    expect(await resealChannels(after)).toEqual({ resealed: 3, unreadable: 0 })
    expect(await openStored(ofNewKey(), made[0]!.id)).toEqual({ kind: 'slack', url: 'https://a.example/x' })
    for (const { id } of made) expect((await readSealed(test.database, id)).sealedWith).toEqual(after.sealer.keyId)
    expect(await resealChannels(after)).toEqual({ resealed: 0, unreadable: 0 })
    expect(await resealChannels(ofNewKey())).toEqual({ resealed: 0, unreadable: 0 })
  })

  it('handles more channels than one batch, and leaves those that it cannot read', async () => {
    const lost = contextOf(test.database, { sealer: createSealer(LOST_KEY) })
    for (const [context, count] of [
      [before, 130],
      [lost, 120],
    ] as const) {
      for (let index = 0; index < count; index += 1) {
        const copy = randomUUID()
        const { sealed, sealedWith } = context.sealer.seal(copy, { kind: 'slack', url: 'https://example.com/x' })
        await test.database.query(
          `insert into channels (id, organization_id, kind, name, sealed, sealed_with, event_types, created_at)
            values ($1, $2, 'slack', 'x', $3, $4, '{check.down}', now())`,
          [copy, acme.id, sealed, sealedWith],
        )
      }
    }
    const readLost = async () => {
      const { rows } = await test.database.query<{ sealed: Buffer }>(
        'select sealed from channels where sealed_with = $1 order by id',
        [lost.sealer.keyId],
      )
      return rows
    }
    const unreadable = await readLost()
    expect(await resealChannels(after)).toEqual({ resealed: 130, unreadable: 120 })
    expect(await readLost()).toEqual(unreadable)
    expect(await resealChannels(after)).toEqual({ resealed: 0, unreadable: 120 })
  })

  it('works in two replicas at the same time', async () => {
    const made = await Promise.all(Array.from({ length: 20 }, () => aChannel(before, acme.id)))
    const counts = await Promise.all([resealChannels(after), resealChannels(after)])
    expect(counts[0]!.resealed + counts[1]!.resealed).toBe(20)
    for (const { id, secret } of made) expect(await openStored(ofNewKey(), id)).toMatchObject({ secrets: [{ secret }] })
  })

  it('does not undo a concurrent change', async () => {
    const { id } = await aChannel(before, acme.id)
    const changed = { url: 'https://changed.example/' }
    // The channel changes after it was read and before it is written.
    let changing: Promise<unknown> = Promise.resolve()
    const { sealer } = after
    const slow: ChannelContext = {
      ...after,
      sealer: sealer,
      database: {
        ...after.database,
        async query(statement, values) {
          if (String(statement).startsWith('update channels')) {
            changing = updateChannel(after, acme.caller, id, { readConfig: () => changed })
            await changing
          }
          return after.database.query(statement, values)
        },
      },
    }
    expect(await resealChannels(slow)).toEqual({ resealed: 0, unreadable: 0 })
    expect(await openStored(ofNewKey(), id)).toMatchObject({ url: 'https://changed.example/' })
  })
})

describe('channels that were sealed without SECRET_KEY', () => {
  const sealFor = async ({ publicKey }: OpeningSealer) => {
    const sealer = createPublicSealer(publicKey)
    return aChannel(contextOf(test.database, { sealer }), acme.id, {
      kind: 'slack',
      config: { url: 'https://a.example/x' },
    })
  }
  const SETTINGS = { kind: 'slack', url: 'https://a.example/x' }

  it('are read, and sealed under the current key at the next start', async () => {
    const { id } = await sealFor(createSealer(KEY))
    expect(await openStored(before, id)).toEqual(SETTINGS)
    expect(await resealChannels(before)).toEqual({ resealed: 1, unreadable: 0 })
    expect((await readSealed(test.database, id)).sealedWith).toEqual(before.sealer.keyId)
    expect(await openStored(before, id)).toEqual(SETTINGS)
  })

  it('are read after SECRET_KEY was replaced, by the previous one', async () => {
    const { id } = await sealFor(createSealer(KEY))
    expect(await resealChannels(ofNewKey())).toEqual({ resealed: 0, unreadable: 1 })
    expect(await resealChannels(after)).toEqual({ resealed: 1, unreadable: 0 })
    expect(await openStored(ofNewKey(), id)).toEqual(SETTINGS)
  })

  it('are sealed for the key of the api role that started last', async () => {
    expect(await findSealingKey(test.database)).toBeNull()
    for (const key of [KEY, NEW_KEY, NEW_KEY]) {
      const { publicKey } = createSealer(key)
      await saveSealingKey(test.database, publicKey)
      expect(await findSealingKey(test.database)).toEqual(publicKey)
    }
  })
})
