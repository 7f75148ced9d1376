/**
 * Brings the check of a HeartbeatCheck in line with its declaration (design, section 6): gather the facts, plan, act. A
 * check that is as declared is read once, without a lock. Declarations of one resource wait for each other on the
 * resource's lock, pings and the API's calls on the lock of the check's state. Where no check of the id that is sought
 * can be had, the resource is declared anew, without the id.
 */

import { type Audited, audited } from '../../audit/audited.ts'
import { controllerOf } from '../../domain/access.ts'
import { AppError } from '../../domain/errors.ts'
import { PUBLIC_ID_IS_UNIQUE, SLUG_IS_UNIQUE, type StoredCheck } from '../../store/checks/checks.ts'
import type { GivenSpec } from '../../store/checks/columns.ts'
import { findDeclaredCheck, saveOrigin } from '../../store/checks/declared-checks.ts'
import { leaveLists, lockDependencies } from '../../store/checks/dependencies.ts'
import type { Context } from '../../store/context.ts'
import { saveSource } from '../../store/jobs/cron-jobs.ts'
import type { Queryable } from '../../store/postgres/database.ts'
import { constraintOf } from '../../store/postgres/sqlstate.ts'
import { type ResolvedDependencies, resolveDependencies } from '../choose-dependencies.ts'
import { completeSpec, readSpec } from '../read-spec.ts'
import { actOfCreation, actsOfDeclaration, change, create, type Declaring } from './act.ts'
import { type Gathered, gather } from './gather.ts'
import { isOfFormerNamespace } from './place.ts'
import {
  type Declaration,
  isOnlyRelocated,
  NOTHING_THERE,
  type PausedUntil,
  type Plan,
  plan,
  type Rejection,
  readPause,
  rejectOther,
} from './plan.ts'
import { bury } from './retire-check.ts'

export type { Place, Revival } from './place.ts'
export type { Declaration } from './plan.ts'

/**
 * `revived`: its resource was deleted and is there again. `readopted`: the same for a retained check. `restored`: the
 * database had lost the check, and a new one has its URL again. `replaced`: the same, with a new URL. `updated`: the
 * resource or the stored check was changed.
 */
export type DeclareChange =
  | 'created'
  | 'revived'
  | 'readopted'
  | 'adopted'
  | 'restored'
  | 'replaced'
  | 'updated'
  | 'unchanged'

export interface Declared {
  readonly check: StoredCheck
  readonly change: DeclareChange
  /** The check that a person gave to the resource is lost, and this new one has its place. */
  readonly fault?: AppError
  /** Left out: it names none. */
  readonly dependencies?: ResolvedDependencies
}

/** What the check follows. */
export interface DeclaredSource {
  readonly name: string
  /** Where the limit of its runs is set, in words; null: as before. */
  readonly limitFrom: string | null
}

export interface GivenDeclaration
  extends Omit<Declaration, 'spec' | 'pausedUntil' | 'wasPublished' | 'isLost' | 'dependsOn'> {
  readonly spec: GivenSpec
  /** Names of HeartbeatChecks of its namespace. Default: none. */
  readonly dependencies?: readonly string[]
  /**
   * Until when the check is paused, unless it is suspended; a time that has passed pauses nothing. `kept`: as long as
   * its resource pauses it now. Default: null.
   */
  readonly pausedUntil?: PausedUntil
  /** Null: nothing. Left out: what it is known to follow. */
  readonly source?: DeclaredSource | null
  /** For a resource without a check: reads the public id in the URL that it has published. Left out: it has none. */
  readonly findPublicId?: (() => Promise<string | null>) | undefined
}

type Anew = Plan & { readonly kind: 'anew' }

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
  const declared = await declareAlone(context, declaration)
  const { source = null } = declaration
  // After the transaction: where this is lost, the next reconcile saves it. It may change alone.
  if (source !== null) await saveSource(context.database, declared.check.key, source.name, source.limitFrom)
  return declared
}

async function declareAlone(
  context: Context,
  { findPublicId, dependencies: names = [], ...declaration }: GivenDeclaration,
): Promise<Declared> {
  const spec = completeSpec(declaration.spec, 'kubernetes')
  const { resource } = declaration
  const check = await findDeclaredCheck(context.database, resource)
  const pause = readPause(declaration, check?.state ?? null, check?.kubernetesSuspend ?? null, context.clock.now())
  const dependencies = await resolveDependencies(context.database, declaration, names, check?.id ?? null, 'read')
  const dependsOn = dependencies.ids
  const wanted: Declaration = { ...declaration, ...pause, spec, dependsOn, wasPublished: findPublicId !== undefined }
  if (check !== null && !isOfFormerNamespace(check, wanted)) {
    const guess = plan({ ...NOTHING_THERE, check }, wanted)
    // Without a lock only these are certain: the check is as declared, must not move, or has another id than the one to
    // adopt.
    if (guess.kind === 'nothing') return { check, change: 'unchanged', ...named(names, dependencies) }
    if (guess.kind === 'reject') throw toError(guess)
    if (guess.kind === 'change' && isOnlyRelocated(guess)) {
      await saveOrigin(context.database, check.key, resource, guess.origin)
      return { check: { ...check, origin: guess.origin }, change: 'unchanged', ...named(names, dependencies) }
    }
  }
  let unread: Declaring['unread'] = null
  let publicId = wanted.publicId ?? null
  if (check === null && findPublicId !== undefined)
    publicId = await findPublicId().catch((error: unknown) => {
      unread = { error }
      return null
    })
  let declaring: Declaring = { context, wanted: { ...wanted, publicId }, names, spec: readSpec(spec), unread }
  for (let attempt = 1; ; attempt += 1) {
    try {
      const declared = await audited(context, controllerOf(resource.cluster), async (tx) => {
        const done = await declareLocked(declaring, tx)
        // In the transaction: the next reconcile finds the check as declared, and forgets nothing. A new one has none.
        const isForgotten = declaration.source === null && !('kind' in done.result) && done.result.change !== 'created'
        if (isForgotten) await saveSource(tx, done.result.check.key, null)
        return done
      })
      if (!('kind' in declared)) return { ...declared, ...faultOf(declared, wanted) }
      const { isLost } = declared
      const anew = { ...wanted, adoptId: null, knownId: null, isLost, publicId: isLost ? publicId : null }
      declaring = { ...declaring, wanted: anew, unread: isLost ? unread : null }
    } catch (error) {
      if (!LOST_RACES.has(constraintOf(error)) || attempt === TRIES) throw error
    }
  }
}

function faultOf({ check }: Declared, wanted: Declaration): Pick<Declared, 'fault'> {
  const other = rejectOther(check, wanted)
  return other === null ? {} : { fault: toError(other) }
}

async function declareLocked(declaring: Declaring, tx: Queryable): Promise<Audited<Declared | Anew>> {
  const { context, wanted, names } = declaring
  if (names.length > 0) await lockDependencies(tx, { inProject: wanted.projectId })
  const facts = await gather(tx, wanted)
  if (facts.check === null || !isOfFormerNamespace(facts.check, wanted)) return link(declaring, tx, facts)
  // What is locked elsewhere keeps an id that stands for nothing.
  await leaveLists(tx, facts.check)
  const buried = await bury(context, tx, wanted.resource, facts.check, facts.locked!)
  const { result, acts } = await link(declaring, tx, await gather(tx, wanted))
  return { result, acts: [...buried, ...acts] }
}

/** The checks that it depends on are locked behind its own state. */
async function link(declaring: Declaring, tx: Queryable, facts: Gathered): Promise<Audited<Declared | Anew>> {
  const { wanted, names } = declaring
  const { id } = facts.check ?? facts.retained?.check ?? facts.adoptee ?? { id: null }
  const dependencies = await resolveDependencies(tx, wanted, names, id, 'keep')
  const linked = { ...declaring, wanted: { ...wanted, dependsOn: dependencies.ids } }
  const { result, acts } = await carryOut(linked, tx, facts)
  return { result: 'kind' in result ? result : { ...result, ...named(names, dependencies) }, acts }
}

function named(names: readonly string[], dependencies: ResolvedDependencies): Pick<Declared, 'dependencies'> {
  return names.length === 0 ? {} : { dependencies }
}

async function carryOut(declaring: Declaring, tx: Queryable, facts: Gathered): Promise<Audited<Declared | Anew>> {
  const decided = plan(facts, declaring.wanted)
  switch (decided.kind) {
    case 'nothing':
      return { result: { check: decided.check, change: 'unchanged' }, acts: [] }
    case 'anew':
      return { result: decided, acts: [] }
    case 'create':
    case 'revive': {
      const { unread = null } = declaring
      if (decided.kind === 'create' && unread !== null) throw unread.error
      const check = await create(declaring, tx, decided)
      const { isLost = false, publicId = null } = declaring.wanted
      const again = check.publicId === publicId ? 'restored' : 'replaced'
      const isAgain = decided.kind === 'create' && (isLost || publicId !== null)
      const made = isAgain ? again : CHANGES[decided.kind]
      return { result: { check, change: made }, acts: [actOfCreation(check, decided)] }
    }
    case 'change':
    case 'adopt':
    case 'regain':
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
  regain: 'updated',
  readopt: 'readopted',
} as const

function toError({ code, message, field }: Rejection): AppError {
  return new AppError(code, message, field === undefined ? {} : { field })
}
