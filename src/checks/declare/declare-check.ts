/**
 * Brings the check of a HeartbeatCheck in line with its declaration (design, section 6): gather the facts, plan, act. Idempotent:
 * a check that is as declared is read once, without a lock, and not written. Declarations of one resource wait for each other on
 * the resource's lock, but a first one that finds nothing in its way takes none: it meets the others in a unique index. Pings and the
 * API's calls wait on the lock of the check's state.
 */

import { AppError } from '../../domain/errors.ts'
import { RESOURCE_IS_UNIQUE, SLUG_IS_UNIQUE, type StoredCheck } from '../../store/checks/checks.ts'
import { findDeclaredCheck } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { constraintOf } from '../../store/postgres/sqlstate.ts'
import { readSpec, withTimeZone } from '../read-spec.ts'
import { change, create, createFirst, type Declaring } from './act.ts'
import { gather } from './gather.ts'
import { type Declaration, NOTHING_THERE, type Plan, plan } from './plan.ts'

export type { Declaration } from './plan.ts'

/** `revived`: its resource was deleted and is there again. `updated`: the resource or the stored check was changed. */
export type DeclareChange = 'created' | 'revived' | 'adopted' | 'updated' | 'unchanged'

export interface Declared {
  readonly check: StoredCheck
  readonly change: DeclareChange
}

/** Another transaction took the slug, or created the resource's check without a lock, after the facts were gathered. */
const LOST_RACES = new Set<string | undefined>([SLUG_IS_UNIQUE, RESOURCE_IS_UNIQUE])
const TRIES = 5

/**
 * Throws AppError `invalid` for a schedule that makes no sense; `not_found` for a project that is gone. An adoption is rejected
 * with `not_found` (no such check), `forbidden` (of another project) or `conflict` (of another resource, or this one has
 * another check); then the field is `adoptId`.
 */
export async function declareCheck(context: Context, declaration: Declaration): Promise<Declared> {
  const wanted: Declaration = { ...declaration, spec: withTimeZone(declaration.spec) }
  const check = wanted.isNew === true ? null : await findDeclaredCheck(context.database, wanted.resource)
  const guess = plan({ ...NOTHING_THERE, check }, wanted)
  // Without a lock only these are certain: the check is as declared, or has another id than the one to adopt.
  if (guess.kind === 'nothing') return { check: guess.check, change: 'unchanged' }
  if (check !== null && guess.kind === 'reject') throw toError(guess)
  const declaring = { context, wanted, spec: readSpec(wanted.spec) }
  if (wanted.isNew === true && guess.kind === 'create') {
    const created = await createFirst(declaring, guess)
    if (created !== null) return { check: created, change: 'created' }
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await context.database.transaction((tx) => declareLocked(declaring, tx))
    } catch (error) {
      if (!LOST_RACES.has(constraintOf(error)) || attempt === TRIES) throw error
    }
  }
}

async function declareLocked(declaring: Declaring, tx: Queryable): Promise<Declared> {
  const facts = await gather(tx, declaring.wanted)
  const decided = plan(facts, declaring.wanted)
  switch (decided.kind) {
    case 'nothing':
      return { check: decided.check, change: 'unchanged' }
    case 'create':
    case 'revive':
      return { check: await create(declaring, tx, decided), change: CHANGES[decided.kind] }
    case 'change':
    case 'adopt':
      return { check: await change(declaring, tx, decided, facts.locked!), change: CHANGES[decided.kind] }
    case 'reject':
      throw toError(decided)
  }
}

const CHANGES = { create: 'created', revive: 'revived', change: 'updated', adopt: 'adopted' } as const

function toError({ code, message, field }: Plan & { kind: 'reject' }): AppError {
  return new AppError(code, message, field === undefined ? {} : { field })
}
