/** The names that the operator uses in the cluster. They are a contract: none changes. */

import type { ResourceType } from '../kubernetes/objects.ts'

export const GROUP = 'heartbeat-operator.io'
export const VERSION = 'v1alpha1'
export const API_VERSION = `${GROUP}/${VERSION}`
export const KIND = 'HeartbeatCheck'
export const HEARTBEAT_CHECKS: ResourceType = { group: GROUP, version: VERSION, plural: 'heartbeatchecks' }

export const FIELD_MANAGER = 'heartbeat-operator'
export const LEASE_NAME = 'heartbeat-operator'
export const FINALIZER = `${GROUP}/cleanup`
/** On a published Secret or ConfigMap: the name of its HeartbeatCheck. */
export const CHECK_LABEL = `${GROUP}/check`
/** On a Secret or ConfigMap of others, with the value "true": the operator may publish into it. */
export const ADOPT_ANNOTATION = `${GROUP}/adopt`
/** On a HeartbeatCheck: the id of a check of the API that it adopts. */
export const ADOPT_CHECK_ANNOTATION = `${GROUP}/adopt-check-id`
/** On a Namespace: slugs of the projects that it may use, separated by commas. */
export const PROJECTS_ANNOTATION = `${GROUP}/projects`

/** On a published Secret or ConfigMap. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by'
/** The key of the ping URL, by default. */
export const DEFAULT_KEY = 'HEARTBEAT_URL'

/** Limits of Kubernetes. */
export const OBJECT_NAME_LENGTH = 253
export const LABEL_LENGTH = 63
