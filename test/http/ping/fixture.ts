/** The service of a file, and a check of its own for each test. */

import { randomUUID } from 'node:crypto'
import { startTestApp } from '../../support/app.ts'
import { use, useEach } from '../../support/use.ts'

export function usePings() {
  const app = use(startTestApp)
  const check = useEach(async () => {
    const { id, publicId } = await app.createCheck({ name: `Job ${randomUUID()}` })
    return { id, publicId, target: `/ping/${publicId}` }
  })
  return { app, check, stored: () => app.storedPings(check.publicId) }
}
