/**
 * Brings the check of a HeartbeatCheck in line with its declaration (design, section 6): gather the facts, plan, act. A
 * check that is as declared is read once, without a lock. Declarations of one resource wait for each other on the
 * resource's lock, pings and the API's calls on the lock of the check's state.
 */

import { type Audited, audited } from '../../audit/audited.ts'
import { controllerOf } from '../../domain/access.ts'
import { AppError } from '../../domain/errors.ts'
import { PUBLIC_ID_IS_UNIQUE, SLUG_IS_UNIQUE, type StoredCheck } from '../../store/checks/checks.ts'
import type { GivenSpec } from '../../store/checks/columns.ts'
import { findDeclaredCheck, saveOrigin } from '../../store/checks/declared-checks.ts'
import type { Context } from '../../store/context.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { constraintOf } from '../../store/postgres/sqlstate.ts'
import { completeSpec, readSpec } from '../read-spec.ts'
import { actOfCreation, actsOfDeclaration, change, create, type Declaring } from './act.ts'
import { type Gathered, gather } from './gather.ts'
import { isOfFormerNamespace } from './place.ts'
import { type Declaration, isOnlyRelocated, NOTHING_THERE, type Plan, plan } from './plan.ts'
import { bury } from './retire-check.ts'

export type { Place, Revival } from './place.ts'
export type { Declaration } from './plan.ts'

/**
 * `revived`: its resource was deleted and is there again. `readopted`: the same for a retained check. `updated`: the resource or the
 * stored check was changed.
 */
export type DeclareChange = 'created' | 'revived' | 'readopted' | 'adopted' | 'updated' | 'unchanged'

export interface Declared {
  readonly check: StoredCheck
  readonly change: DeclareChange
}

export type GivenDeclaration = Omit<Declaration, 'spec'> & { readonly spec: GivenSpec }

/** Another transaction took the slug or the public id after the facts were gathered. */
const LOST_RACES = new Set<string | undefined>([SLUG_IS_UNIQUE, PUBLIC_ID_IS_UNIQUE])
const TRIES = 5

/**
 * Throws AppError `invalid_request` for a schedule that makes no sense; `not_found` for a project that is gone. An
 * adoption is rejected with `not_found` (no such check), `forbidden` (of another project) or `conflict` (of another
 * resource, or this one has another check); then the field is `adoptId`. `conflict` with the field `retained`: the
 * check that the resource retained was changed through the API since. `forbidden`: an adopted check would leave its
 * project.
 */
export async function declareCheck(context: Context, declaration: GivenDeclaration): Promise<Declared> {
  const wanted: Declaration = { ...declaration, spec: completeSpec(declaration.spec, 'kubernetes') }
  const check = await findDeclaredCheck(context.database, wanted.resource)
  if (check !== null && !isOfFormerNamespace(check, wanted)) {
    const guess = plan({ ...NOTHING_THERE, check }, wanted)
    // Without a lock only these are certain: the check is as declared, must not move, or has another id than the one to adopt.
    if (guess.kind === 'nothing') return { check, change: 'unchanged' }
    if (guess.kind === 'reject') throw toError(guess)
    if (guess.kind === 'change' && isOnlyRelocated(guess)) {
      await saveOrigin(context.database, check.key, wanted.resource, guess.origin)
      return { check: { ...check, origin: guess.origin }, change: 'unchanged' }
    }
  }
  const declaring = { context, wanted, spec: readSpec(wanted.spec) }
  const by = controllerOf(wanted.resource.cluster)
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await audited(context, by, (tx) => declareLocked(declaring, tx))
    } catch (error) {
      if (!LOST_RACES.has(constraintOf(error)) || attempt === TRIES) throw error
    }
  }
}

async function declareLocked(declaring: Declaring, tx: Queryable): Promise<Audited<Declared>> {
  const { context, wanted } = declaring
  const facts = await gather(tx, wanted)
  if (facts.check === null || !isOfFormerNamespace(facts.check, wanted)) return carryOut(declaring, tx, facts)
  const buried = await bury(context, tx, wanted.resource, facts.check, facts.locked!)
  const { result, acts } = await carryOut(declaring, tx, await gather(tx, wanted))
  return { result, acts: [...buried, ...acts] }
}

async function carryOut(declaring: Declaring, tx: Queryable, facts: Gathered): Promise<Audited<Declared>> {
  const decided = plan(facts, declaring.wanted)
  switch (decided.kind) {
    case 'nothing':
      return { result: { check: decided.check, change: 'unchanged' }, acts: [] }
    case 'create':
    case 'revive': {
      const check = await create(declaring, tx, decided)
      return { result: { check, change: CHANGES[decided.kind] }, acts: [actOfCreation(check, decided)] }
    }
    case 'change':
    case 'adopt':
    case 'readopt': {
      const check = await change(declaring, tx, decided, facts.locked!)
      const isUnchanged = decided.kind === 'change' && isOnlyRelocated(decided)
      const made = isUnchanged ? 'unchanged' : CHANGES[decided.kind]
      return { result: { check, change: made }, acts: actsOfDeclaration(check, decided) }
    }
    case 'reject':
      throw toError(decided)
  }
}

const CHANGES = {
  create: 'created',
  revive: 'revived',
  change: 'updated',
  adopt: 'adopted',
  readopt: 'readopted',
} as const

function toError({ code, message, field }: Plan & { kind: 'reject' }): AppError {
  return new AppError(code, message, field === undefined ? {} : { field })
}
