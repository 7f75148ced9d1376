/** Which checks depend on which, as a graph: its nodes are ids, or the names of resources. Pure. */

/** The names of a ring that a message has at most. */
const SHOWN_NAMES = 10

/**
 * What the edges lead to from `first`, the nearest first, each with the node before it (null: it is one of `first`). It
 * ends with the first `limit` nodes.
 */
export function reach(
  first: Iterable<string>,
  edgesOf: (node: string) => Iterable<string>,
  limit = Number.POSITIVE_INFINITY,
): Map<string, string | null> {
  const before = new Map<string, string | null>()
  const add = (nodes: Iterable<string>, from: string | null) => {
    for (const node of nodes) if (!before.has(node) && before.size < limit) before.set(node, from)
  }
  add(first, null)
  // The loop also reaches what it adds.
  for (const node of before.keys()) add(edgesOf(node), node)
  return before
}

/** The shortest way from `start` over `first` back to it: `start`, and each node behind it. Null: there is none. */
export function findRing(
  start: string,
  first: readonly string[],
  edgesOf: (node: string) => Iterable<string>,
  limit?: number,
): string[] | null {
  const before = reach(first, edgesOf, limit)
  if (!before.has(start)) return null
  const ring: string[] = []
  for (let node = before.get(start)!; node !== null; node = before.get(node)!) ring.unshift(node)
  return [start, ...ring]
}

/** `a -> b -> a`. Of a long ring only its beginning. */
export function describeRing(names: readonly string[]): string {
  const others = names.length - SHOWN_NAMES
  const shown = others > 0 ? [...names.slice(0, SHOWN_NAMES), `${others} more`] : names
  return [...shown, names[0]].join(' -> ')
}
