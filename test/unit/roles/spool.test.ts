/** The spool of a process whose folder cannot be used when it starts. */

import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { createMetrics } from '../../../src/roles/metrics.ts'
import { createSpoolRole, type SpoolRoleOptions } from '../../../src/roles/spool.ts'
import { openSpool } from '../../../src/spool/open-spool.ts'
import { FakeFiles } from '../../support/fake-files.ts'
import { createManualClock } from '../../support/manual-clock.ts'

function createRole(maxBytes = 2 ** 20) {
  const clock = createManualClock()
  const files = new FakeFiles()
  const lines: string[] = []
  const logged: object[] = []
  const metrics = createMetrics()
  const log = (level: string) => (line: object, text: string) => {
    lines.push(`${level} ${text.split(':')[0]}`)
    logged.push(line)
  }
  const role = createSpoolRole({
    config: { spoolDir: '/spool', spoolMaxBytes: maxBytes },
    log: { info: log('info'), warn: log('warn'), error: log('error') },
    metrics,
    clock,
    databaseClock: clock,
    pingDatabase: { queryColumns: async () => [[0]] },
    recorder: { isWell: () => true, recovered: () => {}, drain: (work: () => Promise<void>) => work() },
    files,
  } as unknown as SpoolRoleOptions)
  return { role, clock, files, lines, logged, metrics }
}
const spooled = (text: string) => ({
  ping: {
    publicId: randomUUID(),
    type: 'success',
    exitCode: 0,
    durationMs: null,
    runId: null,
    body: Buffer.from(text),
    at: 1_000,
  } as const,
  pingId: null,
})
const CANNOT = 'error the spool cannot be opened'
const OPEN_NOW = 'info the spool is open now'

it('a spool whose lock the process before it still has is opened within half a minute after that has stopped', async () => {
  const { role, clock, files, lines } = createRole()
  const before = await openSpool({ folder: '/spool', maxBytes: 2 ** 20, onProblem: () => {}, files })
  await role.open()
  await clock.advance(65_000)
  expect([role.pings(), role.report(), lines]).toEqual([null, null, [CANNOT]])
  await before.append([Buffer.from('left')])
  await before.close()
  await clock.advance(24_999)
  expect(role.pings()).toBeNull()
  await clock.advance(1)
  expect(role.pings()?.hasRoom()).toBe(true)
  expect(role.pings()?.pings()).toBe(1)
  await clock.advance(120_000)
  expect(lines.filter((line) => line === OPEN_NOW)).toEqual([OPEN_NOW])
  // Until then pings were refused.
  expect(role.report()?.refusedAt).toBe(clock.now() - 120_000)
})

it('a spool is opened again after an error of the disk that passes, and never after a failed fsync', async () => {
  for (const [operation, isOpened] of [
    ['open', true],
    ['datasync', false],
    ['syncFolder', false],
  ] as const) {
    const { role, clock, files, lines } = createRole()
    files.faultOf = (of) => (of === operation ? 'EIO' : undefined)
    await role.open()
    files.faultOf = () => undefined
    await clock.advance(300_000)
    expect([operation, role.pings() !== null, lines]).toEqual([
      operation,
      isOpened,
      isOpened ? [CANNOT, OPEN_NOW] : [CANNOT],
    ])
  }
})

it('damage of the spool is counted and logged with its bytes, and the pings of other files are recorded', async () => {
  const { role, files, lines, logged, metrics } = createRole()
  await role.open()
  await role.pings()!.append([spooled('first')])
  await role.pings()!.append([spooled('second')])
  const name = files.names().find((name) => files.content(`/spool/${name}`).includes('second'))!
  const bytes = files.content(`/spool/${name}`)
  bytes[bytes.indexOf('second')]! ^= 1
  files.put(`/spool/${name}`, bytes)
  expect((await role.pings()!.read(0)).map(({ ping }) => String(ping.body))).toEqual(['first'])
  await role.pings()!.append([spooled('third')])
  expect((await role.pings()!.read(0)).map(({ ping }) => String(ping.body))).toEqual(['first', 'third'])
  expect(lines).toEqual(['error a file of the spool is damaged, or of another format'])
  const offset = bytes.indexOf('first') + 'first'.length
  expect(logged).toEqual([
    { file: `/spool/${name}`, offset, bytes: bytes.length - offset, keptAs: expect.stringMatching(/\.damaged$/) },
  ])
  expect((await metrics.spoolDropped.get()).values).toContainEqual({ labels: { reason: 'damaged' }, value: 1 })
  expect(role.pings()?.accepts()).toBe(true)
})

it('a spool with pings of a later version is closed, and is not opened again by this process', async () => {
  const { role, clock, files, lines } = createRole()
  const later = await openSpool({ folder: '/spool', maxBytes: 2 ** 20, onProblem: () => {}, files })
  await later.append([Buffer.from([2, 0, 0])])
  await later.close()
  await role.open()
  await role.drain()
  await clock.advance(300_000)
  expect([role.pings(), role.report(), files.openFiles]).toEqual([null, null, 0])
  expect(lines).toEqual(['info pings wait in the spool; they are recorded first', 'error the spool cannot be read'])
})

it('a beat names a thousand checks whose rows others have locked; with more, or other pings, all deadlines wait', async () => {
  const { role } = createRole()
  await role.open()
  const pings = role.pings()!
  const addLocked = (position: number) => pings.noteLocked([{ ...spooled(''), position, key: 10_000 + position }])
  for (let position = 1; position <= 1_000; position += 1) {
    await pings.append([spooled('')])
    addLocked(position)
  }
  const keys = Array.from({ length: 1_000 }, (_, index) => 10_001 + index)
  expect(role.report()).toEqual({ pendingSince: null, refusedAt: null, lockedChecks: keys })
  await pings.append([spooled('')])
  const waiting = { pendingSince: 1_000, refusedAt: null, lockedChecks: [] }
  expect(role.report()).toEqual(waiting)
  addLocked(1_001)
  expect(role.report()).toEqual(waiting)
})

it('a spool that is off, or closed, is not opened', async () => {
  const off = createRole(0)
  await off.role.open()
  const closed = createRole()
  closed.files.faultOf = () => 'EACCES'
  await closed.role.open()
  closed.files.faultOf = () => undefined
  await closed.role.close()
  for (const { role, clock, files } of [off, closed]) {
    await clock.advance(300_000)
    expect([role.pings(), files.names()]).toEqual([null, []])
  }
})
