/**
 * The delayed keys of a queue, each once: a binary heap by time. A sorted array is half the code, and took 16 s to add
 * 100,000 keys.
 */

export type Priority = 'live' | 'background'

interface Entry {
  readonly key: string
  at: number
  priority: Priority
  /** Its position in the heap. */
  index: number
}

export function createDelays() {
  const byKey = new Map<string, Entry>()
  const heap: Entry[] = []

  /** A key that is already there keeps the earlier time and the higher priority. */
  function put(key: string, at: number, priority: Priority): void {
    const held = byKey.get(key)
    if (held === undefined) {
      const entry = { key, at, priority, index: heap.length }
      byKey.set(key, entry)
      moveUp(entry)
    } else {
      if (priority === 'live') held.priority = priority
      if (at >= held.at) return
      held.at = at
      moveUp(held)
    }
  }

  function place(entry: Entry, index: number): void {
    heap[index] = entry
    entry.index = index
  }

  function moveUp(entry: Entry): void {
    let { index } = entry
    while (index > 0) {
      const parent = heap[(index - 1) >> 1]!
      if (parent.at <= entry.at) break
      place(parent, index)
      index = (index - 1) >> 1
    }
    place(entry, index)
  }

  function takeFirst(): Entry {
    const first = heap[0]!
    const last = heap.pop()!
    if (last !== first) moveDownFromTop(last)
    byKey.delete(first.key)
    return first
  }

  function moveDownFromTop(entry: Entry): void {
    let index = 0
    for (;;) {
      const [left, right] = [heap[2 * index + 1], heap[2 * index + 2]]
      const child = left !== undefined && right !== undefined && right.at < left.at ? right : left
      if (child === undefined || child.at >= entry.at) break
      const next = child.index
      place(child, index)
      index = next
    }
    place(entry, index)
  }

  return {
    put,
    /** When the first of them is due. */
    earliest: () => heap[0]?.at,
    /** Removes and returns what is due, earliest first. */
    takeDue(now: number) {
      const due: Entry[] = []
      while (heap.length > 0 && heap[0]!.at <= now) due.push(takeFirst())
      return due
    },
    clear(): void {
      byKey.clear()
      heap.length = 0
    },
  }
}
