/**
 * The public ids of all checks with their keys, and the specs of the checks whose next success is plain, in memory
 * (about 115 MB for a million checks): so a ping needs no look-up, and while the database is away, an id of a check can
 * be distinguished from an invented id.
 *
 * Nothing here is proof: checks are made, changed and removed meanwhile. The commit of a ping finds out (commit.ts).
 */

import { type Clock, yieldTurn } from '../../runtime/clock.ts'
import { isPlain, type KnownId, readKnownIds } from '../../store/checks/plain-pings.ts'
import { type KnownSpec, type LockedCheck, readSpecs } from '../../store/checks/states.ts'
import type { Queryable } from '../../store/postgres/database.ts'

export type KnownChecks = ReturnType<typeof createKnownChecks>

/** What the ping path needs. */
export type KnownKeys = Pick<KnownChecks, 'keyOf' | 'plainSpecOf' | 'learn' | 'noteRow' | 'forget'>

export interface KnownChecksOptions {
  readonly database: Queryable
  readonly clock: Pick<Clock, 'now'>
  /** Checks that are read at once, and entries that are looked at in a turn. */
  readonly page?: number
}

const PAGE = 2_000
/** Reading all checks may take this part of the time. */
const SHARE = 1 / 50
/** Each reading of all checks has the next mark. They are few: V8 stores numbers below 2^31 without an object. */
const MARKS = 4
/** Different specs, about 250 bytes each. Pings of checks with other specs take locks. */
const MAX_SPECS = 50_000

/** Ids are in lower case. Before a refresh it knows what was looked up. */
export function createKnownChecks({ database, clock, page = PAGE }: KnownChecksOptions) {
  /**
   * By public id: the key times MARKS, plus the mark of the last reading that found the check. A second Map for each
   * reading would double the memory.
   */
  const entries = new Map<string, number>()
  /** By key: of checks whose next success is plain. */
  const plain = new Map<number, KnownSpec>()
  /** By hash: one object for all checks with the same spec. */
  const specs = new Map<number, KnownSpec>()
  let mark = 0
  let readAllAt = Number.NEGATIVE_INFINITY
  /** The greatest keys: of the last refresh, and of the refresh before. */
  let newestKeys: [before: number, last: number] = [0, 0]

  const keyOf = (publicId: string) => {
    const entry = entries.get(publicId)
    return entry === undefined ? undefined : Math.floor(entry / MARKS)
  }

  function learn(publicId: string, key: number): void {
    entries.set(publicId, key * MARKS + mark)
  }

  function forget(publicId: string): void {
    const key = keyOf(publicId)
    if (key !== undefined) plain.delete(key)
    entries.delete(publicId)
  }

  function addSpec(spec: KnownSpec): void {
    if (spec.hash !== 0 && !specs.has(spec.hash) && specs.size < MAX_SPECS) specs.set(spec.hash, spec)
  }

  /** `hash`: of the spec of the check, or 0: its next success is not plain. */
  function setPlain(key: number, hash: number): void {
    const spec = specs.get(hash)
    if (spec === undefined) plain.delete(key)
    else plain.set(key, spec)
  }

  async function readAll(signal?: AbortSignal): Promise<void> {
    const startedAt = clock.now()
    mark = (mark + 1) % MARKS
    if (specs.size >= MAX_SPECS) specs.clear()
    await readAfter(0, signal)
    if (signal?.aborted) return
    await dropUnread()
    const now = clock.now()
    readAllAt = now + (now - startedAt) / SHARE
  }

  async function readAfter(key: number, signal?: AbortSignal): Promise<void> {
    let newest = key
    while (!signal?.aborted) {
      const found = await readKnownIds(database, newest, page)
      await addPage(found)
      newest = found.at(-1)?.[1] ?? newest
      if (found.length < page) break
    }
    newestKeys = [newestKeys[1], newest]
  }

  async function addPage(found: readonly KnownId[]): Promise<void> {
    for (const [publicId, key] of found) learn(publicId, key)
    /** A check for each hash whose spec is not known. */
    const unknown = new Map(found.flatMap(([, key, hash]) => (hash === 0 || specs.has(hash) ? [] : [[hash, key]])))
    if (unknown.size > 0) for (const spec of await readSpecs(database, [...unknown.values()])) addSpec(spec)
    for (const [, key, hash] of found) setPlain(key, hash)
  }

  async function dropUnread(): Promise<void> {
    let looked = 0
    for (const [publicId, entry] of entries) {
      if (entry % MARKS !== mark) forget(publicId)
      looked += 1
      if (looked % page === 0) await yieldTurn()
    }
  }

  return {
    /** Undefined: look it up. */
    keyOf,
    /** The spec of the check, where its next success is plain as far as is known. */
    plainSpecOf: (key: number) => plain.get(key),
    /** After a look-up or a creation. */
    learn,
    /** What the row of a check says about its next success. */
    noteRow({ key, specHash: hash, stored, spec, state }: LockedCheck): void {
      const isPlainNext = spec !== null && spec.awaits === 'completion' && isPlain(state)
      if (isPlainNext) addSpec({ hash, stored, spec })
      setPlain(key, isPlainNext ? hash : 0)
    },
    /** No check has this id. */
    forget,
    /** Whether a check has this id, as far as this process knows. */
    has: (publicId: string) => entries.has(publicId),
    get size() {
      return entries.size
    },
    /**
     * `signal`: ends it early. Throws the error of the database; what is known then stays. Keys are given before they
     * are committed: smaller keys may have come since the last refresh, which is read again.
     */
    refresh: (signal?: AbortSignal): Promise<void> =>
      clock.now() >= readAllAt ? readAll(signal) : readAfter(newestKeys[0], signal),
  }
}
