import { expect, it } from 'vitest'
import { searchCheck } from '../../../src/checks/find-checks.ts'
import { yieldTurn } from '../../../src/runtime/clock.ts'
import type { Context } from '../../../src/store/context.ts'

const tenant = (organizationId: string) => ({ organizationId, projectId: null })

it('a search by all ids takes turns: one of an organization runs, twenty wait, more are refused', async () => {
  const answer = Promise.withResolvers<{ rows: never[] }>()
  let reads = 0
  const query = () => {
    reads += 1
    return answer.promise
  }
  const context = { database: { query } } as unknown as Context
  const search = (organization: string) =>
    searchCheck(context, tenant(organization), 'project', () => false).catch((error: { code: string }) => error.code)
  const first = Array.from({ length: 21 }, () => search('acme'))
  expect(await search('acme')).toBe('unavailable')
  const other = search('other')
  await yieldTurn()
  expect(reads).toBe(2)
  answer.resolve({ rows: [] })
  expect(await Promise.all([...first, other])).toEqual(Array.from({ length: 22 }, () => 'not_found'))
  expect(await search('acme')).toBe('not_found')
})
