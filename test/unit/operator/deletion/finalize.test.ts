/** A deletion that goes on without its clean-up; the others are in test/operator. */

import { expect, it } from 'vitest'
import { createFinalizer, type FinalizerOptions } from '../../../../src/operator/deletion/finalize.ts'
import { MAX_CLEANUP_MS } from '../../../../src/operator/resource/finalizer.ts'
import { aHeartbeatCheck, anApiError } from '../../../support/builders.ts'

it('is reported once, when the finalizer is off, however often another writer was faster', async () => {
  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const finalizers = ['heartbeat-operator.io/cleanup']
  const object = aHeartbeatCheck({
    metadata: { deletionTimestamp, finalizers },
    spec: { periodSeconds: 60, publish: { kind: 'None' } },
  })
  const answers = [anApiError(409, { reason: 'Conflict', message: 'changed' }), null]
  const said: string[] = []
  const finalize = createFinalizer({
    client: {
      async mergePatch() {
        const answer = answers.shift()
        if (answer != null) throw answer
        return object
      },
    },
    service: { retireCheck: () => Promise.reject(new Error('the database is away')) },
    cluster: 'default',
    recorder: { record: (_: unknown, { reason }: { reason: string }) => said.push(reason) },
    now: () => Date.parse(deletionTimestamp) + MAX_CLEANUP_MS,
    onFinalizerForced: () => said.push('counted'),
  } as unknown as FinalizerOptions)
  await expect(finalize(object)).rejects.toThrow('changed')
  await finalize(object)
  expect(said).toEqual(['counted', 'CleanupTimeout'])
})
