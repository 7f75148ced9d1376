/** Makes the checks of a source in a project. Each is a transaction of its own, so that a run that was interrupted goes on where it ended. */

import { createCheck } from '../checks/create-check.ts'
import { completeSpec, readSpec } from '../checks/read-spec.ts'
import type { Principal } from '../domain/access.ts'
import type { Act } from '../domain/audit.ts'
import { AppError, describeError, isConflict } from '../domain/errors.ts'
import { withSuffix } from '../domain/slug.ts'
import { addSilence } from '../silences/create-silence.ts'
import { findHoldersOfPublicIds, findHoldersOfTokens, type Holder } from '../store/checks/check-holders.ts'
import { readSlugs } from '../store/checks/new-checks.ts'
import type { Context } from '../store/context.ts'
import type { Queryable } from '../store/postgres/database.ts'
import type { SourceCheck, SourceItem, SourceSilence } from './source.ts'

export interface Destination extends Principal {
  readonly projectId: string
}

export interface ImportOptions {
  readonly isDryRun: boolean
  /** Takes how many items are done, after each of them. */
  readonly onProgress: (done: number) => void
  /** Ends the import between two checks. */
  readonly signal: AbortSignal
}

/** The outcomes of the table, in its order. */
export const OUTCOMES = ['made', 'there already', 'refused', 'left out'] as const
export type Outcome = (typeof OUTCOMES)[number]

export interface Row {
  readonly name: string
  readonly outcome: Outcome
  readonly reason: string
}

const BATCH = 500

/** One row for each item, in their order; fewer when the signal came. What exists is not changed. */
export async function importItems(
  context: Context,
  into: Destination,
  items: readonly SourceItem[],
  { isDryRun, onProgress, signal }: ImportOptions,
): Promise<Row[]> {
  const rows: Row[] = []
  const takeSlug = createTakeSlug(await readSlugs(context.database, into.projectId))
  const here = new Set<string>()
  for (let from = 0; from < items.length; from += BATCH) {
    const batch = items.slice(from, from + BATCH)
    const holders = await findHolders(context, batch)
    for (const item of batch) {
      if (signal.aborted) return rows
      rows.push(await importItem(item))
      onProgress(rows.length)
    }

    async function importItem(item: SourceItem): Promise<Row> {
      const { name, kind } = item
      if (kind !== 'check') return { name, outcome: kind, reason: item.reason }
      const identity = identityOf(item)
      const holder = holders.get(identity)
      if (holder !== undefined) return heldRow(name, holder, into)
      if (here.has(identity)) return { name, outcome: 'refused', reason: 'an earlier check of the source has its id' }
      const row = await makeCheck(context, into, item, takeSlug, isDryRun)
      if (row.outcome === 'made') here.add(identity)
      return row
    }
  }
  return rows
}

const identityOf = ({ identity }: SourceCheck) => ('publicId' in identity ? identity.publicId : identity.pushToken)

async function findHolders({ database }: Context, items: readonly SourceItem[]): Promise<Map<string, Holder>> {
  const identities = items.flatMap((item) => (item.kind === 'check' ? [item.identity] : []))
  const publicIds = identities.flatMap((identity) => ('publicId' in identity ? identity.publicId : []))
  const tokens = identities.flatMap((identity) => ('pushToken' in identity ? identity.pushToken : []))
  return new Map([
    ...(await findHoldersOfPublicIds(database, publicIds)),
    ...(await findHoldersOfTokens(database, tokens)),
  ])
}

/** Nothing is said of another organization but that it is another one. */
function heldRow(name: string, holder: Holder, into: Destination): Row {
  if (holder.organizationId !== into.organizationId)
    return { name, outcome: 'refused', reason: 'another organization has a check with its id' }
  const reason = holder.projectId === into.projectId ? '' : `in project ${holder.projectName} (${holder.projectSlug})`
  return { name, outcome: 'there already', reason }
}

async function makeCheck(
  context: Context,
  into: Destination,
  { kind, name, identity, slug: wanted, texts, notes, silences = [], ...given }: SourceCheck,
  takeSlug: TakeSlug,
  isDryRun: boolean,
): Promise<Row> {
  try {
    readSpec(completeSpec(given.spec, 'api'))
    const { projectId } = into
    let left: string[] = []
    const silence: Parameters<typeof createCheck>[4] = async (tx, { id: checkId }) => {
      const made = await silenceCheck(context, into, tx, checkId, silences)
      left = made.left
      return made.acts
    }
    const slug = await takeSlug(wanted, async (slug) => {
      const input = { projectId, slug, ...texts, ...given, ...identity }
      if (!isDryRun) await createCheck(context, into, input, undefined, silence)
    })
    const said = [...notes, ...left, ...(slug === wanted ? [] : [`the slug ${wanted} is taken: it has ${slug}`])]
    return { name, outcome: 'made', reason: said.join('; ') }
  } catch (error) {
    if (!(error instanceof AppError) || (error.code !== 'invalid_request' && !isConflict(error.code))) throw error
    return { name, outcome: 'refused', reason: reasonOf(error) }
  }
}

/** `left`: why some were not made. */
async function silenceCheck(
  context: Context,
  into: Destination,
  tx: Queryable,
  checkId: string,
  silences: readonly SourceSilence[],
): Promise<{ readonly acts: readonly Act[]; readonly left: string[] }> {
  const shared = {
    projectId: into.projectId,
    checkId,
    createdBy: { kind: 'user', id: null, name: 'the import' },
  } as const
  const acts: Act[] = []
  const left: string[] = []
  for (const silence of silences) {
    try {
      acts.push(...(await addSilence(tx, context, into, { ...silence, ...shared })).acts)
    } catch (error) {
      if (!(error instanceof AppError) || !isConflict(error.code)) throw error
      left.push(`is without the silence ${silence.comment}: ${error.message}`)
    }
  }
  return { acts, left }
}

const NAMES: Record<string, string> = { periodSeconds: 'timeout', schedule: 'schedule', timeZone: 'tz', slug: 'slug' }

function reasonOf(error: AppError): string {
  // Another process was faster than this one; a later run finds what it made.
  if (isConflict(error.code)) return 'another check has its id since: import again'
  return describeError(error, (field) => NAMES[field] ?? field).text
}

type TakeSlug = ReturnType<typeof createTakeSlug>

/** The returned function calls `use` with `wanted`, or with the next number that is free, and returns the slug. */
function createTakeSlug(taken: Set<string>) {
  /** The number that was tried last of each wanted slug: thousands may share one. */
  const numbers = new Map<string, number>()
  return async (wanted: string, use: (slug: string) => Promise<void>): Promise<string> => {
    for (let number = (numbers.get(wanted) ?? 0) + 1; ; number += 1) {
      const slug = withSuffix(wanted, number)
      numbers.set(wanted, number)
      if (taken.has(slug)) continue
      taken.add(slug)
      try {
        await use(slug)
        return slug
      } catch (error) {
        if (!(error instanceof AppError && error.code === 'slug_taken')) throw error
      }
    }
  }
}
