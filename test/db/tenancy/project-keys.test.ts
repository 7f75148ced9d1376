import { randomUUID } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createProjectKey, getProjectKey, revokeProjectKey } from '../../../src/tenancy/project-keys.ts'
import { createProject } from '../../../src/tenancy/projects.ts'
import { useEach } from '../../support/use.ts'
import { anOrganization, useOrganization } from '../auth/fixtures.ts'

const KEY = /^[A-Za-z0-9]{22}$/
const NOT_FOUND = { name: 'AppError', code: 'not_found', message: 'project not found' }

const { test, organization: acme, context } = useOrganization()
const other = useEach(() => anOrganization(test.database, 'other'))

const keysOf = (id: string) =>
  Promise.all((['ping', 'badge'] as const).map((kind) => getProjectKey(context(), acme.caller, id, kind)))

describe('keys of a project', () => {
  it('a new project has a badge key of its own, and no ping key', async () => {
    const made = await createProject(context(), acme.caller, { name: 'Jobs' })
    const [ping, badge] = await keysOf(made.id)
    expect([ping, badge]).toEqual([null, expect.stringMatching(KEY)])
    expect((await keysOf(await acme.addProject('next')))[1]).not.toBe(badge)
  })

  it.each(['ping', 'badge'] as const)(
    'a new %s key replaces the one before, and leaves the other kind alone',
    async (kind) => {
      const id = await acme.addProject('own')
      const sibling = await acme.addProject('sibling')
      const before = { own: await keysOf(id), sibling: await keysOf(sibling) }
      const first = await createProjectKey(context(), acme.caller, id, kind)
      const second = await createProjectKey(context(), acme.caller, id, kind)
      expect([first, second]).toEqual([expect.stringMatching(KEY), expect.stringMatching(KEY)])
      expect(second).not.toBe(first)
      const place = kind === 'ping' ? 0 : 1
      expect(await keysOf(id)).toEqual(before.own.with(place, second))
      expect(await keysOf(sibling)).toEqual(before.sibling)

      await revokeProjectKey(context(), acme.caller, id, kind)
      await revokeProjectKey(context(), acme.caller, id, kind)
      expect(await keysOf(id)).toEqual(before.own.with(place, null))
    },
  )

  it('belong to callers that see the project', async () => {
    const [own, sibling] = [await acme.addProject('own'), await acme.addProject('sibling')]
    const before = await keysOf(own)
    for (const [caller, id] of [
      [acme.boundTo(sibling), own],
      [other.caller, own],
      [acme.caller, randomUUID()],
      [acme.caller, '1'],
    ] as const)
      for (const verb of [getProjectKey, createProjectKey, revokeProjectKey])
        await expect(verb(context(), caller, id, 'badge')).rejects.toMatchObject(NOT_FOUND)
    expect(await keysOf(own)).toEqual(before)
    expect(await createProjectKey(context(), acme.boundTo(own), own, 'ping')).toMatch(KEY)
  })

  it('have each character as often as the others', async () => {
    const { rows } = await test.database.query<{ key: string }>(
      'select make_project_key() as key from generate_series(1, 4000)',
    )
    const counts = new Map<string, number>()
    for (const { key } of rows) {
      expect(key).toMatch(KEY)
      for (const character of key) counts.set(character, (counts.get(character) ?? 0) + 1)
    }
    expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length)
    expect(counts.size).toBe(62)
    // 1,419 of each are expected, with a deviation of 37: eight of these. Bytes modulo 62 would give the first eight a quarter more, 1,719.
    for (const count of counts.values()) expect(Math.abs(count - (4000 * 22) / 62)).toBeLessThan(300)
  })
})
