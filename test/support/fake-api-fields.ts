/** Which manager owns which field of an object, as server-side apply defines it: what an update and an apply make of the owners. */

import { isDeepStrictEqual } from 'node:util'
import type { FakeMeta, FakeObject } from './fake-api-storage.ts'
import { Refused } from './fake-api-storage.ts'

export interface FieldsOwner {
  readonly manager: string
  readonly operation: 'Apply' | 'Update'
  readonly apiVersion: string
  readonly time: string
  readonly fieldsType: 'FieldsV1'
  readonly fieldsV1: FieldTree
  readonly subresource?: 'status'
}

interface FieldTree {
  [field: string]: FieldTree
}

export interface Writer {
  /** Default: what the server makes of our client's User-Agent. */
  readonly manager?: string
  readonly subresource?: 'status'
}

/** Nobody owns what the server itself writes. */
const UNOWNED = new Set([
  'name',
  'namespace',
  'uid',
  'resourceVersion',
  'generation',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'managedFields',
])

type Leaves = Map<string, unknown>
const keyOf = (path: readonly string[]) => JSON.stringify(path)
const pathOf = (key: string): string[] => JSON.parse(key)
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Values by the path of their field. Lists are one field, but for the owners and the finalizers of an object. */
function leavesOf({ apiVersion: _, kind: _kind, metadata, ...rest }: FakeObject): Leaves {
  const leaves: Leaves = new Map()
  const walk = (value: unknown, path: readonly string[]) => {
    if (isRecord(value)) for (const [name, inner] of Object.entries(value)) walk(inner, [...path, `f:${name}`])
    else if (value !== undefined) leaves.set(keyOf(path), value)
  }
  walk(rest, [])
  for (const [name, value] of Object.entries(metadata)) {
    const path = ['f:metadata', `f:${name}`]
    if (UNOWNED.has(name)) continue
    if (name === 'ownerReferences')
      for (const owner of metadata.ownerReferences ?? [])
        leaves.set(keyOf([...path, `k:${JSON.stringify({ uid: owner.uid })}`]), owner)
    else if (name === 'finalizers')
      for (const finalizer of metadata.finalizers ?? []) leaves.set(keyOf([...path, `v:"${finalizer}"`]), finalizer)
    else walk(value, path)
  }
  return leaves
}

function fieldsOf({ fieldsV1 }: FieldsOwner): Set<string> {
  const keys = new Set<string>()
  const walk = (tree: FieldTree, path: readonly string[]) => {
    const names = Object.keys(tree).filter((name) => name !== '.')
    if (names.length === 0 && path.length > 0) keys.add(keyOf(path))
    for (const name of names) walk(tree[name]!, [...path, name])
  }
  walk(fieldsV1, [])
  return keys
}

function treeOf(keys: Iterable<string>): FieldTree {
  const root: FieldTree = {}
  for (const key of keys) {
    let tree = root
    for (const name of pathOf(key)) {
      tree[name] ??= {}
      tree = tree[name]
    }
  }
  return root
}

/** The same owner keeps its time unless its fields change: a write that changes nothing is none. */
function withFields(owners: readonly FieldsOwner[], owner: Omit<FieldsOwner, 'time' | 'fieldsType' | 'fieldsV1'>) {
  return (keys: Iterable<string>): FieldsOwner[] => {
    const before = owners.find((one) => isSameOwner(one, owner))
    const fieldsV1 = treeOf([...keys].sort())
    if (Object.keys(fieldsV1).length === 0) return []
    if (before !== undefined && isDeepStrictEqual(fieldsOf(before), new Set(keys))) return [before]
    return [{ ...owner, time: toSeconds(), fieldsType: 'FieldsV1', fieldsV1 }]
  }
}

export const toSeconds = () => `${new Date().toISOString().slice(0, 19)}Z`

const isSameOwner = (
  a: Pick<FieldsOwner, 'manager' | 'operation' | 'subresource'>,
  b: Pick<FieldsOwner, 'manager' | 'operation' | 'subresource'>,
) => a.manager === b.manager && a.operation === b.operation && a.subresource === b.subresource

/** Who wrote a field last by an update owns it, and nobody else does. */
export function ownersAfterUpdate(
  before: FakeObject | undefined,
  after: FakeObject,
  { manager = 'node', subresource }: Writer,
): FieldsOwner[] {
  const owners = after.metadata.managedFields ?? before?.metadata.managedFields ?? []
  const was = before === undefined ? new Map<string, unknown>() : leavesOf(before)
  const is = leavesOf(after)
  const changed = [...is.keys()].filter((key) => !isDeepStrictEqual(was.get(key), is.get(key)))
  const lost = new Set([...changed, ...[...was.keys()].filter((key) => !is.has(key))])
  const own = {
    manager,
    operation: 'Update',
    apiVersion: after.apiVersion!,
    ...(subresource && { subresource }),
  } as const
  const isOwn = (owner: FieldsOwner) => isSameOwner(owner, own)
  const kept = owners
    .filter((owner) => !isOwn(owner))
    .flatMap((owner) => {
      const fields = fieldsOf(owner)
      const left = [...fields].filter((key) => !lost.has(key))
      return left.length === fields.size ? [owner] : withFields(owners, owner)(left)
    })
  const ownBefore = owners.find(isOwn)
  const ownFields = [...(ownBefore === undefined ? [] : fieldsOf(ownBefore))].filter((key) => is.has(key))
  return [...kept, ...withFields(owners, own)(new Set([...ownFields, ...changed]))]
}

/** What `config` names is set and owned; what the manager applied before and does not name any more goes, unless others own it too. */
export function applyConfig(live: FakeObject, config: FakeObject, manager: string, force: boolean): FakeObject {
  const owners = live.metadata.managedFields ?? []
  const own = { manager, operation: 'Apply', apiVersion: live.apiVersion! } as const
  const others = owners.filter((owner) => !isSameOwner(owner, own))
  const before = owners.find((owner) => isSameOwner(owner, own))
  const is = leavesOf(live)
  const wanted = leavesOf(config)
  const differs = [...wanted.keys()].filter((key) => is.has(key) && !isDeepStrictEqual(is.get(key), wanted.get(key)))
  const conflicts = others.flatMap((owner) => {
    const fields = fieldsOf(owner)
    return differs.filter((key) => fields.has(key)).map((key) => ({ key, owner }))
  })
  if (conflicts.length > 0 && !force) throw conflictOf(conflicts, live.metadata)
  const applied = structuredClone(live)
  const ownedByOthers = new Set(others.flatMap((owner) => [...fieldsOf(owner)]))
  for (const key of before === undefined ? [] : fieldsOf(before))
    if (!wanted.has(key) && !ownedByOthers.has(key)) takeAway(applied, pathOf(key))
  for (const [key, value] of wanted) put(applied, pathOf(key), value)
  const taken = new Set(conflicts.map(({ key }) => key))
  applied.metadata.managedFields = [
    ...withFields(owners, own)(wanted.keys()),
    ...others.flatMap((owner) => {
      const left = [...fieldsOf(owner)].filter((key) => !taken.has(key))
      return left.length === fieldsOf(owner).size ? [owner] : withFields(owners, owner)(left)
    }),
  ]
  return applied
}

function conflictOf(conflicts: readonly { key: string; owner: FieldsOwner }[], { name }: FakeMeta): Refused {
  const causes = conflicts.map(({ key, owner }) => ({
    reason: 'FieldManagerConflict',
    message: `conflict with "${owner.manager}"`,
    field: pathOf(key)
      .map((part) => `.${part.slice(2)}`)
      .join(''),
  }))
  const said = causes.map(({ message, field }) => `${message}: ${field}`).join('\n')
  return new Refused(409, 'Conflict', `Apply failed with ${causes.length} conflict(s): ${said}`, { name, causes })
}

function put(object: FakeObject, path: readonly string[], value: unknown): void {
  let at: Record<string, unknown> = object
  for (const [depth, part] of path.slice(0, -1).entries()) {
    const isList = depth === path.length - 2 && !path.at(-1)!.startsWith('f:')
    at[part.slice(2)] ??= isList ? [] : {}
    at = at[part.slice(2)] as Record<string, unknown>
  }
  if (!Array.isArray(at)) {
    at[path.at(-1)!.slice(2)] = structuredClone(value)
    return
  }
  const index = at.findIndex((item) => isItem(item, path.at(-1)!))
  if (index >= 0) at[index] = structuredClone(value)
  else at.push(structuredClone(value))
}

function takeAway(object: FakeObject, path: readonly string[]): void {
  const parent = path
    .slice(0, -1)
    .reduce<unknown>((at, part) => (at as Record<string, unknown>)?.[part.slice(2)], object)
  const last = path.at(-1)!
  if (Array.isArray(parent)) {
    const index = parent.findIndex((item) => isItem(item, last))
    if (index >= 0) parent.splice(index, 1)
  } else if (isRecord(parent)) delete parent[last.slice(2)]
}

/** `k:{"uid":"..."}` of an owner, `v:"..."` of a finalizer. */
function isItem(item: unknown, part: string): boolean {
  const wanted = JSON.parse(part.slice(2))
  return part.startsWith('v:') ? item === wanted : (item as { uid?: string }).uid === wanted.uid
}
