/**
 * The public ids of all checks with their keys, in memory: a ping of a check that this process has not seen needs no
 * look-up, and while the database is away, an id of a check can be distinguished from an invented id. A million checks
 * take 86 MB.
 *
 * Nothing here is proof. A check that is not known may be younger than the last refresh; a known check may have been
 * removed, or made anew, since. The commit of a ping finds out (commit.ts): an id whose check the commit does not find
 * is looked up before the ping is `unknown`.
 *
 * A refresh reads all checks, page by page, if the last reading of all checks took little time, and otherwise the
 * checks that are new.
 */

import { type Clock, yieldTurn } from '../../runtime/clock.ts'
import { PACKED, readPublicIds } from '../../store/checks/public-ids.ts'
import type { Queryable } from '../../store/postgres/database.ts'

/** What the ping path needs. Ids are in lower case. */
export interface KnownKeys {
  /** Undefined: look it up. */
  keyOf(publicId: string): number | undefined
  /** After a look-up or a creation. */
  learn(publicId: string, key: number): void
  /** No check has this id. */
  forget(publicId: string): void
}

export interface KnownChecks extends KnownKeys {
  /** Whether a check has this id, as far as this process knows. */
  has(publicId: string): boolean
  readonly size: number
  /** `signal`: ends it early. Throws the error of the database; what is known then stays. */
  refresh(signal?: AbortSignal): Promise<void>
}

export interface KnownChecksOptions {
  readonly database: Queryable
  readonly clock: Pick<Clock, 'now'>
  /** Called between pages. Default: the next turn of the event loop. */
  readonly yieldToPings?: () => Promise<void>
  /** Checks that are read at once, and entries that are looked at in a turn. */
  readonly page?: number
}

/** All pages of a million checks take half a second of PostgreSQL's processor time, and a quarter of this process's. */
const PAGE = 2_000
/** Reading all checks may take this part of the time. */
const SHARE = 1 / 50
/** Each reading of all checks has the next mark. They are few: V8 stores numbers below 2^31 without an object. */
const MARKS = 4

/** Without a database: what was looked up. */
export function createKnownKeys(): KnownKeys {
  const keys = new Map<string, number>()
  return {
    keyOf: (publicId) => keys.get(publicId),
    learn: (publicId, key) => void keys.set(publicId, key),
    forget: (publicId) => void keys.delete(publicId),
  }
}

export function createKnownChecks({ database, clock, ...options }: KnownChecksOptions): KnownChecks {
  const { yieldToPings = yieldTurn, page = PAGE } = options
  /**
   * By public id: the key times MARKS, plus the mark of the last reading that found the check. A second Map for each
   * reading would double the memory.
   */
  const entries = new Map<string, number>()
  let mark = 0
  let readAllAt = Number.NEGATIVE_INFINITY
  /** The greatest keys that the last refresh found, and the one before it. */
  let newestKeys: [before: number, last: number] = [0, 0]

  const learn = (publicId: string, key: number) => void entries.set(publicId, key * MARKS + mark)

  async function readAll(signal?: AbortSignal): Promise<void> {
    const startedAt = clock.now()
    mark = (mark + 1) % MARKS
    await readAfter(0, signal)
    if (signal?.aborted) return
    await dropUnread()
    const now = clock.now()
    readAllAt = now + (now - startedAt) / SHARE
  }

  async function readAfter(key: number, signal?: AbortSignal): Promise<void> {
    let newest = key
    while (!signal?.aborted) {
      const found = await readPublicIds(database, newest, page)
      if (found === null) break
      const { packed, lastKey } = found
      for (let at = 0; at < packed.length; at += PACKED.id + PACKED.key) {
        const keyAt = at + PACKED.id
        learn(packed.toString('latin1', at, keyAt), packed.readUIntBE(keyAt, PACKED.key))
      }
      newest = lastKey
      if (found.count < page) break
      await yieldToPings()
    }
    newestKeys = [newestKeys[1], newest]
  }

  async function dropUnread(): Promise<void> {
    let looked = 0
    for (const [publicId, entry] of entries) {
      if (entry % MARKS !== mark) entries.delete(publicId)
      looked += 1
      if (looked % page === 0) await yieldTurn()
    }
  }

  return {
    keyOf(publicId) {
      const entry = entries.get(publicId)
      return entry === undefined ? undefined : Math.floor(entry / MARKS)
    },
    learn,
    forget: (publicId) => void entries.delete(publicId),
    has: (publicId) => entries.has(publicId),
    get size() {
      return entries.size
    },
    // Keys are given before they are committed: smaller keys may have come since the last refresh, which is read again.
    refresh: (signal) => (clock.now() >= readAllAt ? readAll(signal) : readAfter(newestKeys[0], signal)),
  }
}
