import { beforeEach, describe, expect, it } from 'vitest'
import { audited, toPlainAddress } from '../../../src/audit/audited.ts'
import { listEntries } from '../../../src/audit/find-entries.ts'
import { SYSTEM } from '../../../src/domain/access.ts'
import type { Act, AuditEntry } from '../../../src/domain/audit.ts'
import { pruneAged } from '../../../src/store/history/pruning.ts'
import { createTestDatabase } from '../../support/database.ts'
import { addTenant } from '../../support/tenant.ts'
import { use, useEach } from '../../support/use.ts'
import { manualClock } from '../auth/fixtures.ts'

const clock = manualClock()
let logged: AuditEntry[]

const test = use(createTestDatabase)
beforeEach(() => test.clear())
const tenant = useEach(() => addTenant(test))
beforeEach(() => {
  logged = []
})

const context = () => ({ database: test.database, clock, onAudit: (entry: AuditEntry) => logged.push(entry) })
const anAct = (action: Act['action'] = 'project.changed'): Act => ({
  action,
  target: { id: tenant.project, name: 'Test' },
  projectId: tenant.project,
})
const list = async (by = tenant) => (await listEntries(context(), by, {}, { limit: 10, after: null })).rows

describe('audited', () => {
  it('stores and logs nothing of a change that is rolled back', async () => {
    const failing = audited(context(), tenant, async (tx) => {
      await tx.query('update projects set name = $1', ['never'])
      return { result: null, acts: [{ ...anAct(), target: { id: 'no uuid', name: null } }] }
    })
    await expect(failing).rejects.toThrow('uuid')
    const { rows } = await test.database.query<{ name: string }>('select name from projects')
    expect([rows[0]!.name, await list(), logged]).toEqual(['Test', [], []])
  })

  it('logs the entries of the attempt that was committed, once', async () => {
    let attempts = 0
    await audited(context(), tenant, async (tx) => {
      attempts += 1
      if (attempts === 1) await tx.query(`do $$ begin raise exception using errcode = '40001'; end $$`)
      return { result: null, acts: [anAct(), anAct('project.removed')] }
    })
    expect(attempts).toBe(2)
    expect(logged.map(({ action }) => action)).toEqual(['project.changed', 'project.removed'])
    expect(await list()).toEqual([...logged].reverse())
  })

  it('finds the organization of an actor without one by the project, else it is that of the installation', async () => {
    const other = await addTenant(test, 'other')
    await audited(context(), SYSTEM, async () => ({ result: null, acts: [{ ...anAct(), projectId: other.project }] }))
    await audited(context(), SYSTEM, async () => ({
      result: null,
      acts: [{ action: 'login.failed', target: null, projectId: null }],
    }))
    expect((await list(other)).map(({ action }) => action)).toEqual(['project.changed'])
    expect(await list()).toMatchObject([{ action: 'login.failed', target: null, actor: { kind: 'system', id: null } }])
  })
})

describe('an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:c000:201', '192.0.2.1'],
    ['2001:DB8:0:0::1', '2001:db8::1'],
    ['unknown', 'unknown'],
  ])('%s is written as %s', (given, written) => {
    expect(toPlainAddress(given)).toBe(written)
  })
})

describe('pruneAged', () => {
  it('deletes entries that are older than the limit, a bounded number at a time', async () => {
    for (let made = 0; made < 3; made += 1) {
      await audited(context(), tenant, async () => ({ result: null, acts: [anAct()] }))
      clock.time += 1_000
    }
    const prune = (at: number, limit: number) => pruneAged(test.database, 'audit_log', at, limit)
    expect(await prune(clock.time - 1_000, 1)).toBe(1)
    expect(await prune(clock.time - 1_000, 10)).toBe(1)
    expect(await prune(clock.time - 1_000, 10)).toBe(0)
    expect(await list()).toHaveLength(1)
  })
})
