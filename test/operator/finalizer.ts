/** A finalizer by hand, on the clock of a test: what an operator does with a resource that is being deleted. */

import { createFinalizer } from '../../src/operator/deletion/finalize.ts'
import type { Service } from '../../src/operator/service.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { clientOf, type Scene } from '../support/operator.ts'
import { serviceWith } from '../support/operator-service.ts'

export const serviceOf = ({ app }: Pick<Scene, 'app'>) => serviceWith({ database: app.database, clock: systemClock })

export function aFinalizer(t: Scene, service: Pick<Service, 'retireCheck'> = serviceOf(t)) {
  const client = clientOf(t.cluster.connection)
  const said: string[] = []
  const notes: string[] = []
  return {
    /** Types and reasons of its Events, and `forced`. */
    said,
    notes,
    /** As a new leader does, which has no memory, so long after the deletion. */
    async finalize(name: string, afterMs: number): Promise<void> {
      const object = await t.place.get(name)
      const now = Date.parse(object.metadata.deletionTimestamp!) + afterMs
      const finalize = createFinalizer({
        client,
        service,
        cluster: 'default',
        recorder: {
          record(_, { type, reason, note }) {
            said.push(`${type} ${reason}`)
            notes.push(note)
          },
        },
        now: () => now,
        onFinalizerForced: () => said.push('forced'),
      })
      await finalize(object)
    },
    [Symbol.asyncDispose]: client[Symbol.asyncDispose],
  }
}
