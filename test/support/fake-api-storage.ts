/**
 * What the fake API server keeps: objects of one resource, one counter of versions, and the history that lists and watches
 * refer to. It does what the contract suite asks of the real one, and no more: no schemas, no rights, no namespaces that end.
 */

import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { OwnerReference } from '../../src/kubernetes/objects.ts'
import { applyConfig, type FieldsOwner, ownersAfterUpdate, toSeconds, type Writer } from './fake-api-fields.ts'

export interface FakeMeta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  deletionGracePeriodSeconds?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: readonly string[]
  ownerReferences?: readonly OwnerReference[]
  managedFields?: readonly FieldsOwner[]
}

export interface FakeObject {
  apiVersion?: string
  kind?: string
  metadata: FakeMeta
  [field: string]: unknown
}

export interface FakeType {
  readonly group: string
  /** The version that is stored. */
  readonly version: string
  readonly plural: string
  readonly kind: string
  /** It has a status subresource: generations, and its status has an endpoint of its own. */
  readonly hasStatus?: boolean
  /** Beside those that every kind can be selected by, as `status.phase`. */
  readonly selectableFields?: readonly string[]
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
  create(object: FakeObject, writer?: Writer): FakeObject
  replace(key: string, object: FakeObject, writer?: Writer): FakeObject
  mergePatch(key: string, patch: object, writer?: Writer): FakeObject
  /** Server-side apply, also of what is not there yet. */
  apply(key: string, config: FakeObject, manager: string, force: boolean): FakeObject
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
  /** An object went, or came with owners: the garbage collector has to look. */
  onOwnership?: () => void
}

export function keyOf({ namespace, name }: Pick<FakeMeta, 'namespace' | 'name'>): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

export function createCollection(type: FakeType, history: FakeHistory): FakeCollection {
  const objects = new Map<string, FakeObject>()
  const entries: Entry[] = []
  const followers = new Set<(entry: Entry) => void>()
  const apiVersion = type.group === '' ? type.version : `${type.group}/${type.version}`

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
    if (after === undefined || after.metadata.ownerReferences !== undefined) history.onOwnership?.()
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

  function invalid(key: string, why: string): Refused {
    const name = key.slice(key.indexOf('/') + 1)
    return new Refused(422, 'Invalid', `${type.kind} "${name}" is invalid: ${why}`, { name, kind: type.kind })
  }

  function checkVersion(key: string, before: FakeObject, asked: string | undefined): void {
    if (asked !== undefined && asked !== before.metadata.resourceVersion)
      throw conflict(key, 'the object has been modified; please apply your changes to the latest version and try again')
  }

  /** Everything of `before` but what this endpoint changes, and what no client may change. */
  function restrict(before: FakeObject, after: FakeObject, subresource: Writer['subresource']): FakeObject {
    const { metadata: had } = before
    if (type.hasStatus && subresource === 'status') {
      const { status: _, ...content } = before
      return { ...content, apiVersion, metadata: had, ...pick(after, 'status') }
    }
    const { labels, annotations, finalizers, ownerReferences, managedFields } = after.metadata
    const ours = { name: had.name, ...pick(had, 'namespace', 'uid', 'resourceVersion', 'generation') }
    const times = pick(had, 'creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds')
    const theirs = {
      labels,
      annotations,
      finalizers,
      ownerReferences,
      managedFields: managedFields ?? had.managedFields,
    }
    const metadata = { ...ours, ...times, ...withoutEmpty(theirs) } as FakeMeta
    const { status: _, ...rest } = after
    const content = type.hasStatus ? { ...rest, ...pick(before, 'status') } : withoutEmpty(after)
    return { ...content, apiVersion, ...pick(before, 'kind'), metadata }
  }

  function update(
    key: string,
    before: FakeObject,
    given: FakeObject,
    writer: Writer,
    owners?: FieldsOwner[],
  ): FakeObject {
    checkVersion(key, before, given.metadata.resourceVersion)
    const after = restrict(before, given, writer.subresource)
    if (before.immutable === true && !isDeepStrictEqual(contentOf(before), contentOf(after)))
      throw invalid(key, 'data: Forbidden: field is immutable when `immutable` is set')
    const { deletionTimestamp, finalizers: had = [] } = before.metadata
    const { finalizers = [] } = after.metadata
    if (deletionTimestamp !== undefined && finalizers.some((one) => !had.includes(one)))
      throw invalid(
        key,
        'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted',
      )
    after.metadata.managedFields = owners ?? ownersAfterUpdate(before, after, writer)
    if (type.hasStatus && !isDeepStrictEqual(contentOf(before), contentOf(after)))
      after.metadata.generation = before.metadata.generation! + 1
    if (deletionTimestamp !== undefined && finalizers.length === 0) return write(key, after, undefined)
    // A write that changes nothing is none.
    return isDeepStrictEqual(sorted(after), sorted(before)) ? before : write(key, before, after)
  }

  function create(object: FakeObject, writer: Writer, owners?: FieldsOwner[]): FakeObject {
    const key = keyOf(object.metadata)
    const { name, namespace, labels, annotations, finalizers, ownerReferences } = object.metadata
    if (objects.has(key))
      throw new Refused(409, 'AlreadyExists', `${type.plural} "${name}" already exists`, { name, kind: type.plural })
    const { kind, hasStatus = false } = type
    const made: FakeObject = {
      ...structuredClone(withoutEmpty(object)),
      apiVersion,
      kind,
      metadata: {
        name,
        ...(namespace === undefined ? {} : { namespace }),
        uid: randomUUID(),
        ...(hasStatus ? { generation: 1 } : {}),
        creationTimestamp: toSeconds(),
        ...(withoutEmpty({ labels, annotations, finalizers, ownerReferences }) as Partial<FakeMeta>),
      },
    }
    if (hasStatus) delete made.status
    made.metadata.managedFields = owners ?? ownersAfterUpdate(undefined, made, writer)
    return write(key, undefined, made)
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
    create: (object, writer = {}) => create(object, writer),
    replace: (key, object, writer = {}) => update(key, find(key), structuredClone(object), writer),
    mergePatch: (key, patch, writer = {}) =>
      update(key, find(key), mergeInto(structuredClone(find(key)), patch) as FakeObject, writer),
    apply(key, config, manager, force) {
      const { uid, resourceVersion } = config.metadata
      const before = objects.get(key)
      if (uid !== undefined && before === undefined)
        throw conflict(key, `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`)
      if (uid !== undefined && uid !== before?.metadata.uid) throw invalid(key, 'metadata.uid: field is immutable')
      const base = before ?? { ...config, metadata: pick(config.metadata, 'name', 'namespace') as FakeMeta }
      const live = before ?? ({ apiVersion: config.apiVersion, metadata: base.metadata } as FakeObject)
      const applied = applyConfig(live, config, manager, force)
      const owners = [...applied.metadata.managedFields!]
      if (before === undefined) return create(applied, {}, owners)
      checkVersion(key, before, resourceVersion)
      return update(key, before, applied, {}, owners)
    },
    delete(key, { uid, resourceVersion } = {}) {
      const before = find(key)
      const { metadata } = before
      if (uid !== undefined && uid !== metadata.uid)
        throw conflict(key, `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid})`)
      if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
        throw conflict(key, `the ResourceVersion in the precondition (${resourceVersion}) does not match`)
      if ((metadata.finalizers ?? []).length === 0) return write(key, before, undefined)
      if (metadata.deletionTimestamp !== undefined) return before
      const ending: FakeMeta = { ...metadata, deletionTimestamp: toSeconds(), deletionGracePeriodSeconds: 0 }
      if (type.hasStatus) ending.generation = metadata.generation! + 1
      return write(key, before, { ...before, metadata: ending })
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
        // Also from a version that is still to come: nothing is sent until then.
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

/** What a generation counts the changes of. */
function contentOf({ apiVersion: _version, metadata: _, status: _status, ...content }: FakeObject): object {
  return content
}

/** As Go leaves out what is empty. */
function withoutEmpty<T extends object>(fields: T): T {
  const isEmpty = (value: unknown) =>
    value === undefined || value === null || (typeof value === 'object' && Object.keys(value).length === 0)
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => !isEmpty(value))) as T
}

function pick<T extends object, K extends keyof T>(fields: T, ...names: K[]): Pick<T, K> {
  return Object.fromEntries(
    names.filter((name) => fields[name] !== undefined).map((name) => [name, fields[name]]),
  ) as Pick<T, K>
}

/** An object that begins or ceases to match is added or deleted for a watch that selects. */
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
