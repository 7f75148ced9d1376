/** Kubernetes objects as they travel: plain JSON, timestamps as text. */

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

/** Who wrote which fields, and how: `Apply`, or `Update` for every other way. */
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

/** Which resource: `{ group: '', version: 'v1', plural: 'secrets' }`. The core group is the empty text. */
export interface ResourceType {
  readonly group: string
  readonly version: string
  readonly plural: string
}

/** Where an object is: the namespace is left out for what has none. */
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

/** `namespace/name`, the key of caches and queues; the name alone for what has no namespace. */
export function keyOf({ namespace, name }: ObjectName): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

export function splitKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/')
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) }
}

/** metav1.MicroTime: real API servers refuse one without its six digits. */
export function toMicroTime(ms: number): string {
  const us = Math.floor((ms % 1_000) * 1_000)
  return `${new Date(Math.floor(ms / 1_000) * 1_000).toISOString().slice(0, 19)}.${String(us).padStart(6, '0')}Z`
}

/** metav1.Time, which knows only seconds. */
export function toTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`
}
