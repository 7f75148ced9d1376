/** What the tests of the operator's verbs start from: a tenant, a resource, and ways to look at what its check became. */

import { afterAll, beforeAll, beforeEach } from 'vitest'
import { type Declared, declareCheck, type GivenDeclaration } from '../../../src/checks/declare/declare-check.ts'
import { retireCheck } from '../../../src/checks/declare/retire-check.ts'
import { createPingRecorder } from '../../../src/checks/ping/record.ts'
import { SYSTEM } from '../../../src/domain/access.ts'
import { NO_TEXTS, type PingType } from '../../../src/domain/check.ts'
import type { Resource, StoredCheck } from '../../../src/store/checks/checks.ts'
import { findDeclaredCheck } from '../../../src/store/checks/declared-checks.ts'
import type { Queryable } from '../../../src/store/postgres/database.ts'
import { versionsOf } from '../../support/state.ts'
import {
  addTenant,
  contextWithin,
  createFixture,
  type Fixture,
  NOW,
  periodSpec,
  ping,
  type TestTenant,
} from '../checks/fixture.ts'

export const RESOURCE: Resource = { cluster: 'default', namespace: 'payments', name: 'nightly-backup' }

export interface OperatorFixture extends Fixture {
  tenant: TestTenant
  /** Empties the database, sets the clock to NOW and makes a tenant. */
  reset(): Promise<void>
  declaration(given?: Partial<GivenDeclaration>): GivenDeclaration
  declare(given?: Partial<GivenDeclaration>): Promise<Declared>
  /** The same as a part of the transaction at hand. */
  declareWithin(tx: Queryable, given?: Partial<GivenDeclaration>): Promise<Declared>
  retire(policy?: 'Delete' | 'Retain', resource?: Resource): ReturnType<typeof retireCheck>
  retireWithin(tx: Queryable): ReturnType<typeof retireCheck>
  read(resource?: Resource): Promise<StoredCheck | null>
  pinged(check: { readonly key: number }, type: PingType, at: number): Promise<string>
  /** `[from, to, reason]` of the whole history, oldest first, read whether or not the check is there. */
  flipsOf(key: number): Promise<unknown[][]>
  versionsOf(key: number): Promise<unknown>
  events(): Promise<string[]>
}

/** Records pings as the ping port does. */
export function createRecorder({ database, clock }: Pick<OperatorFixture, 'database' | 'clock'>) {
  const recorder = createPingRecorder({
    database,
    now: clock.now,
    onGroup: () => {},
    onError: (error) => {
      throw error
    },
  })
  const rest = { exitCode: null, durationMs: null, runId: null, body: null }
  return {
    record: ({ publicId }: Pick<StoredCheck, 'publicId'>, type: PingType) =>
      recorder.record({ publicId, type, ...rest, at: clock.now() }),
    stop: recorder.stop,
  }
}

/** A fixture for all tests of a file, reset before each of them. */
export function useOperatorFixture(): OperatorFixture {
  const self = {} as OperatorFixture
  beforeAll(() => fill(self))
  afterAll(() => self.close())
  beforeEach(() => self.reset())
  return self
}

async function fill(self: OperatorFixture): Promise<void> {
  const fixture = await createFixture()
  const { database, context, clock } = fixture
  const own: OperatorFixture = {
    ...fixture,
    clock,
    tenant: { ...SYSTEM, organizationId: '', projectId: null, project: '' },
    async reset() {
      await fixture.clear()
      clock.time = NOW
      self.tenant = await addTenant(fixture)
    },
    declaration: (given = {}) => ({
      resource: RESOURCE,
      projectId: self.tenant.project,
      name: 'Nightly backup',
      ...NO_TEXTS,
      spec: periodSpec(),
      suspend: null,
      adoptId: null,
      ...given,
    }),
    declare: (given) => declareCheck(context, self.declaration(given)),
    declareWithin: (tx, given) => declareCheck(contextWithin(fixture, tx), self.declaration(given)),
    retire: (policy = 'Delete', resource = RESOURCE) => retireCheck(context, resource, policy),
    retireWithin: (tx) => retireCheck(contextWithin(fixture, tx), RESOURCE, 'Delete'),
    read: (resource = RESOURCE) => findDeclaredCheck(database, resource),
    pinged: (check, type, at) => database.transaction((tx) => ping(tx, check, type, at)),
    async flipsOf(key) {
      const { rows } = await database.query<{ flip: unknown[] }>(
        'select jsonb_build_array(from_status, to_status, reason) as flip from flips where check_key = $1 order by id',
        [key],
      )
      return rows.map(({ flip }) => flip)
    },
    versionsOf: (key) => versionsOf(fixture, { key }),
    async events() {
      const { rows } = await database.query<{ type: string }>('select type from events order by id')
      return rows.map(({ type }) => type)
    },
  }
  Object.assign(self, own)
}
