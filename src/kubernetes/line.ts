/** `namespace/name`; keys without a namespace share a turn. */
const namespaceOf = (key: string) => key.slice(0, Math.max(0, key.indexOf('/')))

/** Waiting keys: round robin by namespace, and within a namespace first in, first out, with removal from the middle. */
export function createLine() {
  /** In the order of their turns. */
  const byNamespace = new Map<string, Set<string>>()

  return {
    push(key: string): void {
      const namespace = namespaceOf(key)
      const keys = byNamespace.get(namespace)
      if (keys === undefined) byNamespace.set(namespace, new Set([key]))
      else keys.add(key)
    },
    remove(key: string): void {
      const namespace = namespaceOf(key)
      const keys = byNamespace.get(namespace)
      keys?.delete(key)
      if (keys?.size === 0) byNamespace.delete(namespace)
    },
    shift(): string | undefined {
      for (const [namespace, keys] of byNamespace) {
        const [key] = keys
        keys.delete(key!)
        byNamespace.delete(namespace)
        // It goes to the end while keys of it are left.
        if (keys.size > 0) byNamespace.set(namespace, keys)
        return key
      }
      return undefined
    },
  }
}
