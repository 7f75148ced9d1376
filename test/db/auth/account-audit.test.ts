import { expect, it } from 'vitest'
import { actsOfFailure } from '../../../src/auth/account-audit.ts'
import { createTestDatabase } from '../../support/database.ts'
import { use } from '../../support/use.ts'

const test = use(createTestDatabase)

it('of failures of unknown accounts a thousand are stored in any day, not two thousand around its end', async () => {
  const isStored = async () => {
    const [act] = await test.database.transaction((tx) => actsOfFailure(tx, null, false))
    expect(act).toMatchObject({ action: 'login.failed', target: null })
    return act!.isLogOnly !== true
  }
  const setWindow = (set: string) => test.database.query(`update rate_windows set ${set}`)
  expect(await isStored()).toBe(true)
  await setWindow('used = 999')
  expect([await isStored(), await isStored()]).toEqual([true, false])
  // Half a day into the next window, half of this one counts; ten seconds less, whatever time this test takes.
  await setWindow(`started_at = now() - interval '36 hours' + interval '10 seconds'`)
  expect(await isStored()).toBe(true)
  await setWindow('used = 499')
  expect([await isStored(), await isStored()]).toEqual([true, false])
})
