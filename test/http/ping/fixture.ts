/** The service of a file, and a check of its own for each test. */

import { randomUUID } from 'node:crypto'
import { insertPushToken } from '../../../src/store/checks/push-tokens.ts'
import { startTestApp, type TestApp } from '../../support/app.ts'
import { use, useEach } from '../../support/use.ts'

export function usePings() {
  const app = use(startTestApp)
  const check = useEach(async () => {
    const { id, publicId } = await app.createCheck({ name: `Job ${randomUUID()}` })
    return { id, publicId, target: `/ping/${publicId}` }
  })
  return { app, check, stored: () => app.storedPings(check.publicId) }
}

/** Returns a token of a push monitor for the check. */
export async function addPushToken({ database }: Pick<TestApp, 'database'>, checkId: string): Promise<string> {
  const token = randomUUID().replaceAll('-', '')
  const { rows } = await database.query<{ key: number }>('select key from checks where id = $1', [checkId])
  await database.transaction((tx) => insertPushToken(tx, token, rows[0]!.key))
  return token
}
