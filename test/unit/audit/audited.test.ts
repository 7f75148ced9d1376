import { expect, it } from 'vitest'
import { toEntries } from '../../../src/audit/audited.ts'
import { SYSTEM } from '../../../src/domain/access.ts'

it('the entries of one change are in their order, wherever within a microsecond it happened', () => {
  const acts = (['check.changed', 'check.paused', 'check.resumed'] as const).map((action) => ({
    action,
    target: { id: '01900000-0000-7000-8000-000000000000', name: 'backup' },
    projectId: null,
  }))
  // The finest steps that a time of today has as a number.
  for (let step = 0; step < 4_096; step += 1) {
    const at = Date.UTC(2026, 10, 24) + step / 4_096
    const ids = toEntries({ clock: { now: () => at } as never }, SYSTEM, acts).map(({ entry }) => entry.id)
    expect(ids, `${at}`).toEqual(ids.toSorted())
    expect(new Set(ids.map((id) => id.slice(0, 18))).size, `${at}`).toBe(acts.length)
  }
})
