import { expect, it } from 'vitest'
import { createFindBadge } from '../../../src/checks/find-badge.ts'
import type { Database } from '../../../src/store/postgres/database.ts'

it('one statement is in flight at a time, and asks once for what many ask', async () => {
  const asked: { keys: string[]; tags: (string | null)[]; answer: (rows: unknown[][]) => void }[] = []
  const queryColumns = ({ values }: { values: readonly unknown[] }) => {
    const { promise, resolve } = Promise.withResolvers<unknown[][]>()
    asked.push({ keys: values[0] as string[], tags: values[1] as (string | null)[], answer: resolve })
    return promise
  }
  const find = createFindBadge({ database: { queryColumns } as unknown as Database, clock: { now: () => 0 } })
  const project = { kind: 'project' } as const
  const first = find('key', project)
  const others = [project, project, { kind: 'tag', tag: 'a' } as const, project].map((subject) => find('key', subject))
  const another = find('another', project)
  expect(asked.map(({ keys, tags }) => [keys, tags])).toEqual([[['key'], [null]]])
  asked[0]!.answer([[1, 'Shop', 0, 1, 0, 0, 0]])
  const counts = { new: 0, up: 1, late: 0, down: 0, paused: 0 }
  expect(await first).toEqual({ label: 'Shop', counts })
  expect(asked.slice(1).map(({ keys, tags }) => [keys, tags])).toEqual([
    [
      ['key', 'key', 'another'],
      [null, 'a', null],
    ],
  ])
  asked[1]!.answer([
    [1, 'Shop', 0, 2, 0, 0, 0],
    [2, 'a', 0, 0, 0, 0, 0],
  ])
  const two = { label: 'Shop', counts: { ...counts, up: 2 } }
  expect(await Promise.all(others)).toEqual([two, two, null, two])
  expect(await another).toBeNull()
})
