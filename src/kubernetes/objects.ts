/** Kubernetes objects as the API server sends them: plain JSON, timestamps as text. */

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid: string
  readonly resourceVersion: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: readonly FieldsOwner[]
}

/** A manager and the fields that it owns, by `Apply` or by `Update` (any other write). */
export interface FieldsOwner {
  readonly manager?: string
  readonly operation?: string
  readonly fieldsV1?: object
}

export interface KubernetesObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

/** `{ group: '', version: 'v1', plural: 'secrets' }`. The core group is the empty string. */
export interface ResourceType {
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** Without a namespace for a cluster-scoped object. */
export interface ObjectName {
  readonly namespace?: string
  readonly name: string
}

/** metav1.Condition. */
export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason: string
  readonly message: string
  readonly lastTransitionTime: string
  readonly observedGeneration?: number
}

/** Returns `namespace/name`, the key of caches and queues; the name alone for a cluster-scoped object. */
export function keyOf({ namespace, name }: ObjectName): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** Of a key with a namespace. */
export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** metav1.MicroTime: API servers reject one without its six digits. */
export function toMicroTime(ms: number): string {
  const us = Math.floor((ms % 1_000) * 1_000)
  return `${new Date(Math.floor(ms / 1_000) * 1_000).toISOString().slice(0, 19)}.${String(us).padStart(6, '0')}Z`
}

/** metav1.Time, in whole seconds. */
export function toTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
