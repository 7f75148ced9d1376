/** Waiting keys: round robin by namespace, and within a namespace first in, first out, with removal from the middle. */

export interface Line {
  /** `namespace/name`; keys without a namespace share a turn. */
  push(key: string): void
  remove(key: string): void
  shift(): string | undefined
}

/** A namespace that has its turn goes to the end while keys of it are left. */
export function createLine(): Line {
  const turns = createTurns()
  const byNamespace = new Map<string, Turns>()

  function drop(namespace: string): void {
    byNamespace.delete(namespace)
    turns.remove(namespace)
  }

  return {
    push(key) {
      const namespace = namespaceOf(key)
      let keys = byNamespace.get(namespace)
      if (keys === undefined) {
        keys = createTurns()
        byNamespace.set(namespace, keys)
        turns.push(namespace)
      }
      keys.push(key)
    },
    remove(key) {
      const namespace = namespaceOf(key)
      const keys = byNamespace.get(namespace)
      keys?.remove(key)
      if (keys?.size() === 0) drop(namespace)
    },
    shift() {
      const namespace = turns.shift()
      if (namespace === undefined) return undefined
      const keys = byNamespace.get(namespace)!
      const key = keys.shift()
      if (keys.size() === 0) byNamespace.delete(namespace)
      else turns.push(namespace)
      return key
    },
  }
}

const namespaceOf = (key: string) => key.slice(0, Math.max(0, key.indexOf('/')))

type Turns = ReturnType<typeof createTurns>

/** Each item once, first in, first out. */
function createTurns() {
  const items = new Set<string>()
  return {
    push: (item: string) => void items.add(item),
    remove: (item: string) => void items.delete(item),
    size: () => items.size,
    shift(): string | undefined {
      const [first] = items
      if (first !== undefined) items.delete(first)
      return first
    },
  }
}
