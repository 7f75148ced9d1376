/**
 * What the fake API server keeps: objects of one resource, one counter of versions, and the history that lists and watches
 * refer to. It does what the contract suite asks of the real one, and no more: no schemas, no finalizers, no apply.
 */

import { randomUUID } from 'node:crypto'

export interface FakeMeta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  creationTimestamp?: string
  labels?: Record<string, string>
}

export interface FakeObject {
  apiVersion?: string
  kind?: string
  metadata: FakeMeta
  [field: string]: unknown
}

export interface FakeType {
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly kind: string
}

export type Select = (object: FakeObject) => boolean

export interface FakeEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'
  readonly object: FakeObject
}

interface Entry {
  readonly version: number
  readonly before: FakeObject | undefined
  readonly after: FakeObject | undefined
}

/** Thrown where the real server answers with a metav1.Status. */
export class Refused extends Error {
  readonly code: number
  readonly reason: string
  readonly details: object | undefined

  constructor(code: number, reason: string, message: string, details?: object) {
    super(message)
    this.code = code
    this.reason = reason
    this.details = details
  }
}

export interface FakeCollection {
  readonly type: FakeType
  get(key: string): FakeObject
  create(object: FakeObject): FakeObject
  replace(key: string, object: FakeObject): FakeObject
  mergePatch(key: string, patch: object): FakeObject
  delete(key: string, preconditions?: { uid?: string; resourceVersion?: string }): FakeObject
  list(select: Select, limit: number, token: string | null): { items: FakeObject[]; version: number; token: string }
  /** What happened after `version`, as a watch with this selection sees it; then each change until the result is called. */
  follow(version: number, select: Select, onEvent: (event: FakeEvent) => void): () => void
}

/** Of all resources, as in etcd. */
export interface FakeHistory {
  version: number
  /** Older lists and watches are expired. */
  oldest: number
}

export function keyOf({ namespace, name }: Pick<FakeMeta, 'namespace' | 'name'>): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

export function createCollection(type: FakeType, history: FakeHistory): FakeCollection {
  const objects = new Map<string, FakeObject>()
  const entries: Entry[] = []
  const followers = new Set<(entry: Entry) => void>()

  function write(key: string, before: FakeObject | undefined, after: FakeObject | undefined): FakeObject {
    history.version += 1
    const version = history.version
    const stamped = structuredClone(after ?? before!)
    stamped.metadata.resourceVersion = String(version)
    if (after === undefined) objects.delete(key)
    else objects.set(key, stamped)
    const entry = { version, before, after: after === undefined ? undefined : stamped }
    entries.push(entry)
    for (const follower of followers) follower(entry)
    return stamped
  }

  function find(key: string): FakeObject {
    const found = objects.get(key)
    const name = key.slice(key.indexOf('/') + 1)
    if (found === undefined)
      throw new Refused(404, 'NotFound', `${type.plural} "${name}" not found`, { name, kind: type.plural })
    return found
  }

  function conflict(key: string, why: string): Refused {
    const name = key.slice(key.indexOf('/') + 1)
    const message = `Operation cannot be fulfilled on ${type.plural} "${name}": ${why}`
    return new Refused(409, 'Conflict', message, { name, kind: type.plural })
  }

  function update(key: string, before: FakeObject, after: FakeObject): FakeObject {
    const asked = after.metadata.resourceVersion
    if (asked !== undefined && asked !== before.metadata.resourceVersion)
      throw conflict(key, 'the object has been modified; please apply your changes to the latest version and try again')
    const { uid, creationTimestamp, resourceVersion, name, namespace } = before.metadata
    after.metadata = { ...after.metadata, ...JSON.parse(JSON.stringify({ uid, creationTimestamp, name, namespace })) }
    after.metadata.resourceVersion = resourceVersion!
    // A write that changes nothing is none.
    if (JSON.stringify(sorted(after)) === JSON.stringify(sorted(before))) return before
    return write(key, before, after)
  }

  /** The state at `version`, by undoing what came after. */
  function stateAt(version: number): Map<string, FakeObject> {
    const state = new Map(objects)
    for (const entry of entries.filter((one) => one.version > version).reverse()) {
      const key = keyOf((entry.before ?? entry.after)!.metadata)
      if (entry.before === undefined) state.delete(key)
      else state.set(key, entry.before)
    }
    return state
  }

  return {
    type,
    get: find,
    create(object) {
      const key = keyOf(object.metadata)
      const { name } = object.metadata
      if (objects.has(key))
        throw new Refused(409, 'AlreadyExists', `${type.plural} "${name}" already exists`, { name, kind: type.plural })
      const { group, version, kind } = type
      const metadata = { ...object.metadata, uid: randomUUID(), creationTimestamp: new Date().toISOString() }
      const apiVersion = group === '' ? version : `${group}/${version}`
      return write(key, undefined, { ...structuredClone(object), apiVersion, kind, metadata })
    },
    replace: (key, object) => update(key, find(key), structuredClone(object)),
    mergePatch: (key, patch) => update(key, find(key), mergeInto(structuredClone(find(key)), patch) as FakeObject),
    delete(key, { uid, resourceVersion } = {}) {
      const before = find(key)
      const { metadata } = before
      if (uid !== undefined && uid !== metadata.uid)
        throw conflict(key, `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid})`)
      if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
        throw conflict(key, `the ResourceVersion in the precondition (${resourceVersion}) does not match`)
      return write(key, before, undefined)
    },
    list(select, limit, token) {
      const from = token === null ? { version: history.version, start: '' } : readToken(token)
      if (from.version < history.oldest) throw expired(from.version, history.oldest)
      const keys = [...stateAt(from.version)]
        .filter(([key, object]) => key > from.start && select(object))
        .sort(([a], [b]) => (a < b ? -1 : 1))
      const page = limit > 0 ? keys.slice(0, limit) : keys
      const isLast = page.length === keys.length
      const next = isLast ? '' : writeToken({ version: from.version, start: page.at(-1)![0] })
      return { items: page.map(([, object]) => object), version: from.version, token: next }
    },
    follow(version, select, onEvent) {
      if (version < history.oldest) throw expired(version, history.oldest)
      const give = (entry: Entry) => {
        // Also from a version that is still to come: nothing is told until then.
        if (entry.version <= version) return
        const event = seenAs(entry, select)
        if (event !== null) onEvent(event)
      }
      for (const entry of entries) give(entry)
      followers.add(give)
      return () => followers.delete(give)
    },
  }
}

/** An object that begins or ceases to match is added or deleted for whoever selects. */
function seenAs({ before, after, version }: Entry, select: Select): FakeEvent | null {
  const was = before !== undefined && select(before)
  const is = after !== undefined && select(after)
  if (is) return { type: was ? 'MODIFIED' : 'ADDED', object: after }
  if (!was) return null
  // The last state, with the version of its end.
  return { type: 'DELETED', object: { ...before, metadata: { ...before.metadata, resourceVersion: String(version) } } }
}

function expired(version: number, oldest: number): Refused {
  return new Refused(410, 'Expired', `too old resource version: ${version} (${oldest})`)
}

const writeToken = (token: { version: number; start: string }) =>
  Buffer.from(JSON.stringify(token)).toString('base64url')

function readToken(token: string): { version: number; start: string } {
  try {
    return JSON.parse(Buffer.from(token, 'base64url').toString())
  } catch {
    throw new Refused(400, 'BadRequest', 'invalid continue token: continue key is not valid')
  }
}

/** RFC 7396. */
function mergeInto(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch
  const merged: Record<string, unknown> =
    typeof target === 'object' && target !== null && !Array.isArray(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete merged[name]
    else merged[name] = mergeInto(merged[name], value)
  }
  return merged
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  )
}
