import { expect, it } from 'vitest'
import { countClear } from '../../../src/channels/count-clear.ts'
import { createSealer } from '../../../src/channels/seal.ts'
import { createTestDatabase } from '../../support/database.ts'
import { anOrganization } from '../auth/fixtures.ts'
import { aChannel, contextOf } from './fixture.ts'

it('counts the channels with a URL without TLS', async () => {
  await using stack = new AsyncDisposableStack()
  const { database } = stack.adopt(await createTestDatabase(), (test) => test.close())
  const context = contextOf(database)
  const { id } = await anOrganization(database)
  const add = (kind: 'webhook' | 'alertmanager' | 'email', config: object) => aChannel(context, id, { kind, config })
  await add('webhook', { url: 'http://example.com/' })
  await add('alertmanager', { urls: ['https://am-0', 'http://am-1'] })
  await add('webhook', { url: 'https://example.com/' })
  await add('webhook', { url: 'http://127.0.0.1/' })
  await add('email', { to: ['a@example.com'] })
  expect(await countClear(context)).toBe(2)
  expect(await countClear({ database, sealer: createSealer(Buffer.alloc(32, 9)) })).toBe(0)
})
