/**
 * The checks of pings whose address has no public id: a ping key and a slug (design, section 3.3), or a token of Uptime
 * Kuma. Each ping is looked up, as keys and slugs change at any time; one statement looks up all pings that wait. Only
 * while the database does not answer, the last check that was found counts (last-found.ts): its ping can be spooled.
 */

import { type Principal, SYSTEM } from '../../domain/access.ts'
import { AppError, unavailable } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import type { CheckName } from '../../domain/slug.ts'
import { createAskInTurn } from '../../store/ask-in-turn.ts'
import { findNamed, type Named } from '../../store/checks/named-checks.ts'
import { findPushed } from '../../store/checks/push-tokens.ts'
import type { Context } from '../../store/context.ts'
import type { Database, Queryable } from '../../store/postgres/database.ts'
import { createCheck } from '../create-check.ts'
import { NO_SPEC } from '../read-spec.ts'
import { createLastFound } from './last-found.ts'

export interface FindAddressedOptions {
  /** The pool of pings. */
  readonly database: Database
  /** For the checks that pings create. */
  readonly context: Context
  /** This process's clock, for limits of time: the database's clock may jump. */
  readonly now: () => number
  /** Counts the creation of a check of the project. Throws AppError `too_many_requests` for one too many. */
  readonly countCreation: (projectId: string) => Promise<void>
  /** A project that has so many checks, however they were created, gets no more from pings. Default: no limit. */
  readonly maxChecks?: number
  /** A ping is rejected because the database does not answer, and its address is not remembered. */
  readonly onRefused?: () => void
  /** How many addresses are remembered of each kind. For tests. */
  readonly remembered?: number
}

export type FindAddressed = ReturnType<typeof createFindAddressed>

/** The database has this long for a look-up, in milliseconds: a client must hear 503 within five seconds, and the ping is still to be stored. */
const BUDGET_MS = 1_000
/** One that has waited longer behind another look-up is given up. */
const MAX_WAIT_MS = 1_500
/** A connection that breaks sooner may have been to a server that is gone: the next one may be to another. */
const RETRY_MS = 500

const LATE = Symbol('late')

export function createFindAddressed(options: FindAddressedOptions) {
  const { database, context, now, countCreation, maxChecks, onRefused, remembered } = options
  const lookUpName = inTurn(findNamed)
  const lookUpToken = inTurn(findTokens)
  const names = createLastFound(remembered)
  const tokens = createLastFound(remembered)

  /** `find`: the answers in the order of the questions. `isAway`: the database did not answer the last time. */
  function inTurn<Question, Answer>(
    find: (db: Queryable, questions: readonly Question[]) => Promise<readonly Answer[]>,
  ) {
    let isAway = false
    const read = (questions: readonly Question[]) =>
      database.session((session) => session.within(BUDGET_MS, (db) => find(db, questions)))
    const ask = createAskInTurn<{ question: Question; since: number }, Answer | typeof LATE>(async (waiting) => {
      const startedAt = now()
      const isLate = ({ since }: { since: number }) => startedAt - since > MAX_WAIT_MS
      const questions = waiting.filter((one) => !isLate(one)).map(({ question }) => question)
      try {
        const found = await read(questions).catch((error) => {
          if (!isOf(error, 'unavailable') || now() - startedAt > RETRY_MS) throw error
          return read(questions)
        })
        isAway = false
        const answers = found.values()
        return waiting.map((one) => (isLate(one) ? LATE : answers.next().value!))
      } catch (error) {
        isAway = isOf(error, 'unavailable')
        throw error
      }
    })
    return {
      isAway: () => isAway,
      async ask(question: Question): Promise<Answer> {
        const answer = await ask({ question, since: now() })
        if (answer === LATE) throw unavailable()
        return answer
      },
    }
  }

  /** `found`: of an address that the database cannot be asked about. A look-up also fails while the database answers: behind too many others. */
  function recall({ isAway }: { isAway: () => boolean }, error: unknown, found: string | null): string {
    if (isOf(error, 'unavailable')) {
      if (isAway() && found !== null) return found
      onRefused?.()
    }
    throw error
  }

  async function look(name: CheckName): Promise<Named | { publicId: string } | null> {
    const address = addressOf(name)
    try {
      const found = await lookUpName.ask(name)
      names.note(address, found?.publicId ?? null)
      return found
    } catch (error) {
      return { publicId: recall(lookUpName, error, names.recall(address)) }
    }
  }

  async function create({ organizationId, projectId }: Named, slug: string): Promise<string> {
    await countCreation(projectId)
    const by: Principal = { ...SYSTEM, name: PINGS, organizationId, projectId }
    const { publicId } = await createCheck(context, by, { projectId, name: slug, slug, spec: DEFAULTS }, maxChecks)
    return publicId
  }

  return {
    /**
     * Null: no such key or slug. `isCreated`: a missing check is created, with the slug as its name and the defaults
     * for the rest; its first ping arms it. `isNew`: it was created just now. Throws AppError `unavailable`,
     * `too_many_requests` or `forbidden` (the project has too many checks), or the error of PostgreSQL.
     */
    async byName(name: CheckName, isCreated: boolean): Promise<{ publicId: string; isNew: boolean } | null> {
      const found = await look(name)
      if (found === null) return null
      if (found.publicId !== null) return { publicId: found.publicId, isNew: false }
      if (!isCreated || !('projectId' in found)) return null
      try {
        const publicId = await create(found, name.slug)
        names.note(addressOf(name), publicId)
        return { publicId, isNew: true }
      } catch (error) {
        // Another ping, perhaps of another replica, has created it, or the project is gone.
        if (!NOT_CREATED.some((code) => isOf(error, code))) throw error
        const publicId = (await look(name))?.publicId ?? null
        if (publicId !== null) return { publicId, isNew: false }
        if (LIMITED.some((code) => isOf(error, code))) throw error
        return null
      }
    },
    /** Null: no such token. Throws AppError `unavailable`, or the error of PostgreSQL. */
    async byToken(token: string): Promise<string | null> {
      try {
        const publicId = await lookUpToken.ask(token)
        tokens.note(token, publicId)
        return publicId
      } catch (error) {
        return recall(lookUpToken, error, tokens.recall(token))
      }
    },
  }
}

async function findTokens(db: Queryable, tokens: readonly string[]): Promise<(string | null)[]> {
  const found = await findPushed(db, tokens)
  return tokens.map((token) => found.get(token) ?? null)
}

const addressOf = ({ pingKey, slug }: CheckName) => `${pingKey}/${slug}`

/** In the audit log. */
const PINGS = 'pings by name'

const DEFAULTS = {
  ...NO_SPEC,
  periodSeconds: LIMITS.periodSeconds.default,
  graceSeconds: LIMITS.graceSeconds.default,
} as const

const LIMITED = ['too_many_requests', 'forbidden'] as const
const NOT_CREATED = ['slug_taken', 'not_found', ...LIMITED] as const

const isOf = (error: unknown, code: AppError['code']) => error instanceof AppError && error.code === code
