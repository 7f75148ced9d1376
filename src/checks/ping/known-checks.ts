/**
 * The public ids of all checks with their keys, in memory: a ping of a check that this process has not seen needs no look-up, and while the
 * database is away, an id of a check can be distinguished from an invented one. A million takes 35 MB.
 *
 * Nothing here is proof. A check that is not known may be younger than the last refresh; a known one may have been removed, or made anew, since. The
 * commit of a ping finds out (commit.ts): what it did not find is looked up before the ping is `unknown`.
 *
 * A refresh reads all checks, page by page, if that took little time when it was done last, and otherwise those that are new.
 */

import { type Clock, yieldTurn } from '../../runtime/clock.ts'
import { createUuidMap, SHARDS } from '../../runtime/uuid-map.ts'
import { PACKED_BYTES, PACKED_KEY_AT, readPublicIds } from '../../store/checks/public-ids.ts'
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
  refresh(signal?: AbortSignal): Promise<RefreshedChecks>
}

export interface RefreshedChecks {
  readonly read: 'all' | 'new'
  readonly added: number
  readonly removed: number
}

export interface KnownChecksOptions {
  readonly database: Queryable
  readonly clock: Pick<Clock, 'now'>
  /** Called between pages. Default: the next turn of the event loop. */
  readonly yieldToPings?: () => Promise<void>
  /** Checks that are read at once. */
  readonly page?: number
}

/** Of a million checks, all pages take about half a second of PostgreSQL's processor time, and a second of this process's. */
const PAGE = 2_000
const TWO_32 = 2 ** 32
/** Reading all checks may take this part of the time. */
const SHARE = 1 / 50
const SHARDS_PER_TURN = 16

/** The marks of what was read: each reading of all checks has the next one. */
const FIRST_MARK = 2
const LAST_MARK = 255

/** Without a database: what was looked up. */
export function createKnownKeys(): KnownKeys {
  const keys = createUuidMap()
  return {
    keyOf: keys.get,
    learn: (publicId, key) => void keys.set(publicId, key, FIRST_MARK),
    forget: (publicId) => void keys.delete(publicId),
  }
}

export function createKnownChecks(options: KnownChecksOptions): KnownChecks {
  const { database, clock, yieldToPings = yieldTurn, page = PAGE } = options
  const keys = createUuidMap()
  let mark = FIRST_MARK
  let readAllAt = Number.NEGATIVE_INFINITY
  /** The greatest keys that the last refresh found, and the one before it. */
  let newestKeys: [before: number, last: number] = [0, 0]

  async function readAll(signal?: AbortSignal): Promise<RefreshedChecks> {
    const startedAt = clock.now()
    mark = mark === LAST_MARK ? FIRST_MARK : mark + 1
    const added = await readAfter(0, signal)
    if (signal?.aborted) return { read: 'all', added, removed: 0 }
    const removed = await dropUnread()
    const now = clock.now()
    readAllAt = now + (now - startedAt) / SHARE
    return { read: 'all', added, removed }
  }

  /** Keys are given before they are committed: what the last refresh read is read again, as smaller keys may have come since. */
  async function readNew(signal?: AbortSignal): Promise<RefreshedChecks> {
    return { read: 'new', added: await readAfter(newestKeys[0], signal), removed: 0 }
  }

  /** Returns how many were not known. */
  async function readAfter(key: number, signal?: AbortSignal): Promise<number> {
    let added = 0
    let newest = key
    while (!signal?.aborted) {
      const found = await readPublicIds(database, newest, page)
      if (found === null) break
      added += addPage(found.packed)
      newest = found.lastKey
      if (found.count < page) break
      await yieldToPings()
    }
    newestKeys = [newestKeys[1], newest]
    return added
  }

  function addPage(packed: Buffer): number {
    const before = keys.size()
    for (let at = 0; at < packed.length; at += PACKED_BYTES) {
      const high = packed.readUInt32BE(at + PACKED_KEY_AT)
      keys.setBytes(packed, at, high * TWO_32 + packed.readUInt32BE(at + PACKED_KEY_AT + 4), mark)
    }
    return keys.size() - before
  }

  async function dropUnread(): Promise<number> {
    let dropped = 0
    for (let shard = 0; shard < SHARDS; shard += 1) {
      dropped += keys.dropOthers(shard, mark)
      if (shard % SHARDS_PER_TURN === 0) await yieldTurn()
    }
    return dropped
  }

  return {
    keyOf: keys.get,
    learn: (publicId, key) => void keys.set(publicId, key, mark),
    forget: (publicId) => void keys.delete(publicId),
    has: (publicId) => keys.get(publicId) !== undefined,
    get size() {
      return keys.size()
    },
    refresh: (signal) => (clock.now() >= readAllAt ? readAll(signal) : readNew(signal)),
  }
}
