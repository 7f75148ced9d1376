/**
 * Kubernetes objects as the API server sends them: plain JSON, timestamps as text. The types are those of client-node,
 * except where ours are narrower on purpose.
 */

import type {
  CoreV1Event,
  V1Condition,
  V1ContainerState,
  V1ContainerStatus,
  V1LeaseSpec,
  V1ManagedFieldsEntry,
  V1ObjectMeta,
  V1OwnerReference,
  V1Pod,
  V1StatusDetails,
} from '@kubernetes/client-node'

/** A type of client-node as JSON: it has classes with Dates, which its own client makes of the text. */
type Json<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? readonly Json<Item>[]
    : T extends object
      ? { readonly [Name in keyof T]: Json<T[Name]> }
      : T

export type OwnerReference = Json<V1OwnerReference>

/** A manager and the fields that it owns, by `Apply` or by `Update` (any other write). */
export type FieldsOwner = Omit<Json<V1ManagedFieldsEntry>, 'fieldsV1'> & { readonly fieldsV1?: object }

/** Narrower than client-node's: what the server has sent has these three. */
export type ObjectMeta = Omit<Json<V1ObjectMeta>, 'name' | 'uid' | 'resourceVersion' | 'managedFields'> & {
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  readonly managedFields?: readonly FieldsOwner[]
}

export interface KubernetesObject {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

/** The least that a cache keeps of an object. Objects in a cache may have any shape beside it. */
export interface CachedObject {
  readonly metadata: {
    readonly namespace?: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
  }
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

export interface ResourceLocation {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly subresource?: string | undefined
}

/** metav1.Condition. */
export type Condition = Omit<Json<V1Condition>, 'status'> & { readonly status: 'True' | 'False' | 'Unknown' }

export type StatusDetails = Json<V1StatusDetails>

/** Without a holder, or with an empty one, the lease is free. */
export type LeaseSpec = Json<V1LeaseSpec>

export type Pod = Omit<Json<V1Pod>, 'metadata'> & KubernetesObject
export type ContainerState = Json<V1ContainerState>
export type ContainerStatus = Json<V1ContainerStatus>
/** An Event as the core group has it: only there field selectors find those of one object (`involvedObject.uid`). */
export type CoreEvent = Omit<Json<CoreV1Event>, 'metadata'> & KubernetesObject

/** Returns `heartbeatchecks shop/nightly`, for messages. */
export function describeLocation({ plural }: ResourceType, { namespace, name }: ResourceLocation): string {
  const place = [namespace, name].filter((part) => part !== undefined).join('/')
  return place === '' ? plural : `${plural} ${place}`
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
