/**
 * The cache of a reflector: the newest state of each object, and the position up to which the API server has reported
 * every change. Pure: lists, events and our own writes go in, changes come out, and each takes effect when it is read.
 *
 * Three independent sources meet here. A list is the truth as of its version. An event is news unless a newer state is
 * known. The response to our own write comes before its event in the watch or after it: in the second case it must not
 * undo later changes or a deletion. It only updates an object that is known: that an object was created, or created
 * again, is reported.
 */

import { type CachedObject, keyOf } from './objects.ts'
import { compareVersions, isNewer } from './resource-version.ts'

export interface Change<T> {
  readonly before: T | undefined
  readonly after: T | undefined
  /** Two lists differ: the states in between were not seen. Left out for what a watch has reported. */
  readonly isListed?: true
}

export type KeyedChange<T> = readonly [key: string, change: Change<T>]

export function createObjectCache<T extends CachedObject>() {
  const objects = new Map<string, T>()
  /** The version from which a watch continues; empty before the first list. */
  let position = ''
  /** Keys of our own writes since a list was requested; null while no list is in flight. */
  let written: Set<string> | null = null

  function moveTo(resourceVersion: string): void {
    // Versions that cannot be compared are used in the order of their arrival.
    if ((compareVersions(resourceVersion, position) ?? 1) > 0) position = resourceVersion
  }

  function* store(key: string, before: T | undefined, after: T): Generator<KeyedChange<T>> {
    if (before !== undefined && before.metadata.uid !== after.metadata.uid) {
      objects.delete(key)
      yield [key, { before, after: undefined }]
      before = undefined
    }
    objects.set(key, after)
    yield [key, { before, after }]
  }

  /** Whether we wrote this object while the list was in flight, and later than the list's version. */
  function isAhead(key: string, listVersion: string): boolean {
    const known = objects.get(key)
    return known !== undefined && written?.has(key) === true && isNewer(known.metadata.resourceVersion, listVersion)
  }

  return {
    get: (key: string): T | undefined => objects.get(key),
    keys: (): Iterable<string> => objects.keys(),
    values: (): Iterable<T> => objects.values(),
    size: () => objects.size,
    position: () => position,
    moveTo,
    /** Call before the list is requested: from here on our own writes may be newer than the list. */
    beginList(): void {
      written = new Set()
    },
    /** Takes a whole list. Objects that it lacks were deleted, but for those of `unread`: these stay as they are. */
    *replace(
      items: readonly T[],
      resourceVersion: string,
      unread: ReadonlySet<string> = NONE,
    ): Generator<KeyedChange<T>> {
      // Not moveTo: after a restored backup the truth has a lower number.
      position = resourceVersion
      const listed = new Set<string>()
      for (const item of items) {
        const key = keyOf(item.metadata)
        listed.add(key)
        if (isAhead(key, resourceVersion)) continue
        const before = objects.get(key)
        if (before !== undefined && isSameState(before, item)) continue
        yield* store(key, before, item)
      }
      for (const [key, before] of objects) {
        if (listed.has(key) || unread.has(key)) continue
        objects.delete(key)
        yield [key, { before, after: undefined }]
      }
      written = null
    },
    /** Yields nothing for a known state, and two changes when the object was created again (another uid). */
    *apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): Generator<KeyedChange<T>> {
      const { resourceVersion } = object.metadata
      moveTo(resourceVersion)
      const key = keyOf(object.metadata)
      const before = objects.get(key)
      if (before !== undefined && isNewer(before.metadata.resourceVersion, resourceVersion)) return
      if (type === 'DELETED') {
        if (objects.delete(key)) yield [key, { before, after: undefined }]
      } else if (before === undefined || !isSameState(before, object)) yield* store(key, before, object)
    },
    /**
     * Whether the server still has the history that the cache comes from. The arguments are of a consistent read:
     * its version, and the first object of all. Such a read is never older than the cache unless etcd was emptied
     * or restored. The server would accept a watch from a version of the old history, and send nothing until the
     * new history is as long, or skip its beginning. A lower version shows the new history; if that is longer
     * already, the first object does: uids are never reused.
     */
    isContinuedBy(resourceVersion: string, first: CachedObject | undefined): boolean {
      const order = compareVersions(resourceVersion, position)
      if (order === null || order < 0) return false
      if (first === undefined) return objects.size === 0
      const known = objects.get(keyOf(first.metadata))
      if (known === undefined || known.metadata.uid !== first.metadata.uid) return false
      return !isNewer(known.metadata.resourceVersion, first.metadata.resourceVersion)
    },
    put(object: T): void {
      const key = keyOf(object.metadata)
      const known = objects.get(key)
      // Cached here, a creation would be no news when the watch reports it, nor the end of an object before it.
      if (known === undefined || known.metadata.uid !== object.metadata.uid) return
      if ((compareVersions(object.metadata.resourceVersion, known.metadata.resourceVersion) ?? 1) <= 0) return
      objects.set(key, object)
      written?.add(key)
    },
  }
}

const NONE: ReadonlySet<string> = new Set()

/** Whether two descriptions are of one version of one object. */
export function isSameState(a: CachedObject, b: CachedObject): boolean {
  return a.metadata.uid === b.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion
}
