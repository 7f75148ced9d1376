import { decideChanges, inCircumstances } from '../../src/checks/change.ts'
import { saveChanges } from '../../src/store/checks/change-sets.ts'
import { lockStates } from '../../src/store/checks/states.ts'
import type { TestApi } from './service.ts'

/** The evaluator of a service reads the check now. */
export async function evaluate(
  { database, context }: Pick<TestApi, 'database' | 'context'>,
  id: string,
): Promise<void> {
  await database.transaction(async (tx) => {
    const { rows } = await tx.query<{ key: number }>('select key from checks where id = $1', [id])
    const { key } = rows[0]!
    const change = { key, event: { kind: 'deadline', gaps: [] }, at: context.clock.now() } as const
    const locked = await lockStates(tx, [key])
    const decided = await inCircumstances(tx, locked, change.at, (around) =>
      decideChanges(locked, [change], 'first', around),
    )
    await saveChanges(tx, decided.changeSet)
  })
}
