import { expect, it } from 'vitest'
import { removeCheck } from '../../../src/checks/remove-check.ts'
import { findPushed, insertPushToken } from '../../../src/store/checks/push-tokens.ts'
import { addCheck, addTenant, useFixture } from './fixture.ts'

const fixture = useFixture()

const give = (token: string, { key }: { key: number }) =>
  fixture.database.transaction((tx) => insertPushToken(tx, token, key))
const find = async (...tokens: string[]) => Object.fromEntries(await findPushed(fixture.database, tokens))

it('a token leads to its check; a check may have several', async () => {
  const [one, two] = [await addCheck(fixture, fixture.tenant), await addCheck(fixture, fixture.tenant)]
  expect(await give('aTokenOfOne', one)).toBe(one.key)
  expect(await give('another_of-1', one)).toBe(one.key)
  expect(await give('aTokenOfTwo', two)).toBe(two.key)
  expect(await find('aTokenOfOne', 'another_of-1', 'aTokenOfTwo', 'unknown', 'ATOKENOFONE')).toEqual({
    aTokenOfOne: one.publicId,
    'another_of-1': one.publicId,
    aTokenOfTwo: two.publicId,
  })
})

it('a token stays with the check that has it, also if another import asks for it later', async () => {
  const one = await addCheck(fixture, fixture.tenant)
  const theirs = await addCheck(fixture, await addTenant(fixture))
  await give('token', one)
  expect(await give('token', theirs)).toBe(one.key)
  expect(await find('token')).toEqual({ token: one.publicId })
})

it('a removed check leaves no token', async () => {
  const one = await addCheck(fixture, fixture.tenant)
  await give('token', one)
  await removeCheck(fixture.context, fixture.tenant, one.id)
  expect(await find('token')).toEqual({})
  const next = await addCheck(fixture, fixture.tenant)
  expect(await give('token', next)).toBe(next.key)
})

it('a text that is no token is rejected', async () => {
  const one = await addCheck(fixture, fixture.tenant)
  await give('x'.repeat(64), one)
  for (const token of ['', 'x'.repeat(65), 'a b', 'a/b', 'é'])
    await expect(give(token, one)).rejects.toThrow('push_tokens')
})
