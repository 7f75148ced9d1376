import { expect, it } from 'vitest'
import { logEntry } from '../../../src/audit/log-entry.ts'
import { AUDIT_ACTIONS, type AuditEntry } from '../../../src/domain/audit.ts'
import { NOON } from '../../support/builders.ts'

const ENTRY: AuditEntry = {
  id: '01a1ffd6-7900-7a00-8a00-1b2c3d4e5f62',
  at: NOON,
  actor: { kind: 'user', id: '01a1ffd0-1111-7222-8333-944445555666', name: 'ada@example.com' },
  action: 'check.changed',
  target: { kind: 'check', id: '01a1ffd6-704f-76e2-8164-e2405742933d', name: 'Shop backup' },
  address: '192.0.2.7',
  detail: { changed: ['grace_seconds'] },
}

it('an entry is a line with its fields and a constant message', () => {
  const lines: unknown[] = []
  const info = (fields: object, message: string) => lines.push([fields, message])
  logEntry({ info, warn: () => {} } as never, ENTRY)
  expect(lines).toEqual([[{ ...ENTRY, at: '2026-11-21T12:00:00.000Z' }, 'audit']])
})

it.each(AUDIT_ACTIONS)('the level of %s', (action) => {
  const levels: string[] = []
  const at = (level: string) => () => levels.push(level)
  logEntry({ info: at('info'), warn: at('warn') } as never, { ...ENTRY, action })
  const isAlarming = ['login.failed', 'login.locked', 'refresh.replayed'].includes(action)
  expect(levels).toEqual([isAlarming ? 'warn' : 'info'])
})
