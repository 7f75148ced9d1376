import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { beforeEach, expect, it } from 'vitest'
import { createLookups, type FindAddresses } from '../../../src/delivery/lookups.ts'
import type { Tenant } from '../../../src/domain/access.ts'
import { settle } from '../../support/until.ts'

const LIMITS = { atOnce: 2, longMs: 1_000, avoidMs: 30_000 }
const FOUND: LookupAddress[] = [{ address: '192.0.2.1', family: 4 }]

let now = 0
let asked: { name: string; answer: (error?: Error) => void }[]
const lookup: LookupFunction = (name, _options, callback) => {
  const answer = (error?: Error) => (error === undefined ? callback(null, FOUND) : callback(error, []))
  asked.push({ name, answer })
}
const names = () => asked.map(({ name }) => name)

beforeEach(() => {
  now = 0
  asked = []
})

it('asks for one name once, however many want it at the same time', async () => {
  const find = createLookups(lookup, () => now, LIMITS)
  const found = [find('a.test', {}), find('a.test', {})]
  await settle()
  expect(names()).toEqual(['a.test'])
  asked[0]!.answer()
  expect(await Promise.all(found)).toEqual([FOUND, FOUND])
  void find('a.test', {})
  await settle()
  expect(names()).toEqual(['a.test', 'a.test'])
})

it('takes no more threads than it may, and goes on as they are free again', async () => {
  const find = createLookups(lookup, () => now, LIMITS)
  const found = ['a.test', 'b.test', 'c.test'].map((name) => find(name, {}))
  await settle()
  expect(names()).toEqual(['a.test', 'b.test'])
  asked[1]!.answer(new Error('no such name'))
  await expect(found[1]).rejects.toThrow('no such name')
  await settle()
  expect(names()).toEqual(['a.test', 'b.test', 'c.test'])
  asked[0]!.answer()
  asked[2]!.answer()
  expect(await found[0]).toEqual(FOUND)
  expect(await found[2]).toEqual(FOUND)
})

it.each([
  ['is not asked for again for a while when it took too long', LIMITS.longMs + 1, true],
  ['is asked for again when it did not', LIMITS.longMs, false],
])('a name %s', async (_what, tookMs, isAvoided) => {
  const find = createLookups(lookup, () => now, LIMITS)
  const first = find('slow.test', {})
  await settle()
  now += tookMs
  asked[0]!.answer(new Error('timed out'))
  await expect(first).rejects.toThrow('timed out')
  const second = find('slow.test', {})
  second.catch(() => {})
  await settle()
  expect(names()).toHaveLength(isAvoided ? 1 : 2)
  if (!isAvoided) return
  await expect(second).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  now += LIMITS.avoidMs
  void find('slow.test', {})
  await settle()
  expect(names()).toHaveLength(2)
})

const PROJECT = { organizationId: 'one', projectId: 'a' }
const askAs = (find: FindAddresses, name: string, tenant?: Tenant, signal?: AbortSignal) => {
  const found = find(name, {}, { tenant, ...(signal === undefined ? {} : { signal }) })
  found.catch(() => {})
  return found
}

it('a project with dead names holds one place, and delays no other', async () => {
  const find = createLookups(lookup, () => now, { ...LIMITS, atOnce: 4 })
  for (let count = 0; count < 20; count += 1) askAs(find, `hook.dead-${count}.test`, PROJECT)
  await settle()
  expect(names()).toEqual(['hook.dead-0.test'])
  const others = [
    askAs(find, 'b.test', { organizationId: 'one', projectId: 'b' }),
    askAs(find, 'c.test', { organizationId: 'two', projectId: null }),
  ]
  await settle()
  expect(names().slice(1)).toEqual(['b.test', 'c.test'])
  for (const { answer } of asked) answer()
  expect(await Promise.all(others)).toEqual([FOUND, FOUND])
})

it('an organization whose projects all have dead names holds half of the places', async () => {
  const find = createLookups(lookup, () => now, { ...LIMITS, atOnce: 4 })
  for (const projectId of ['a', 'b', 'c', 'd']) askAs(find, `${projectId}.test`, { organizationId: 'one', projectId })
  await settle()
  expect(names()).toEqual(['a.test', 'b.test'])
  askAs(find, 'x.test', { organizationId: 'two', projectId: 'x' })
  await settle()
  expect(names()).toEqual(['a.test', 'b.test', 'x.test'])
})

it('a name that another tenant waits for is asked for by each of them', async () => {
  const find = createLookups(lookup, () => now, { ...LIMITS, atOnce: 4 })
  askAs(find, 'dead.test', PROJECT)
  askAs(find, 'hooks.example.com', PROJECT)
  const found = askAs(find, 'hooks.example.com', { organizationId: 'two', projectId: null })
  await settle()
  expect(names()).toEqual(['dead.test', 'hooks.example.com'])
  asked[1]!.answer()
  expect(await found).toEqual(FOUND)
})

it('an attempt that has ended leaves the line', async () => {
  const find = createLookups(lookup, () => now, LIMITS)
  const ended = new AbortController()
  askAs(find, 'first.test', PROJECT)
  const second = askAs(find, 'second.test', PROJECT, ended.signal)
  const another = askAs(find, 'second.test', PROJECT, new AbortController().signal)
  askAs(find, 'third.test', PROJECT)
  await settle()
  ended.abort(new Error('time is up'))
  asked[0]!.answer()
  // Not with the reason of the one for the other, which has not ended.
  for (const found of [second, another]) await expect(found).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  await settle()
  expect(names()).toEqual(['first.test', 'third.test'])
})

it('after a slow name the zone is left alone for a while, by the tenant that has it', async () => {
  const find = createLookups(lookup, () => now, LIMITS)
  const first = askAs(find, 'a.dead.test', PROJECT)
  const waiting = askAs(find, 'b.dead.test', PROJECT)
  await settle()
  now += LIMITS.longMs + 1
  asked[0]!.answer(new Error('timed out'))
  await expect(first).rejects.toThrow('timed out')
  await expect(waiting).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  await expect(askAs(find, 'c.DEAD.test.', PROJECT)).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  askAs(find, 'other.test', PROJECT)
  askAs(find, 'c.dead.test', { organizationId: 'two', projectId: null })
  await settle()
  expect(names()).toEqual(['a.dead.test', 'other.test', 'c.dead.test'])
})

it('a lookup fails when it takes too long, and keeps its place until it ends', async () => {
  const find = createLookups(lookup, () => now, { ...LIMITS, longMs: 20 })
  await expect(askAs(find, 'a.dead.test', PROJECT)).rejects.toMatchObject({ code: 'EAI_AGAIN' })
  const next = askAs(find, 'b.test', PROJECT)
  await settle()
  expect(names()).toEqual(['a.dead.test'])
  asked[0]!.answer()
  await settle()
  asked[1]!.answer()
  expect(await next).toEqual(FOUND)
})
