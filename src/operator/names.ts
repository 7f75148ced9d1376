/** The names that the operator uses in the cluster. They are a contract: none changes. */

import type { ResourceType } from '../kubernetes/objects.ts'

export const GROUP = 'heartbeat-operator.io'
/** The only version. */
export const VERSION = 'v1'
export const API_VERSION = `${GROUP}/${VERSION}`
export const KIND = 'HeartbeatCheck'
export const HEARTBEAT_CHECKS: ResourceType = { group: GROUP, version: VERSION, plural: 'heartbeatchecks' }
export const CHANNEL_KIND = 'HeartbeatChannel'
export const HEARTBEAT_CHANNELS: ResourceType = { group: GROUP, version: VERSION, plural: 'heartbeatchannels' }
export const SILENCE_KIND = 'HeartbeatSilence'
export const HEARTBEAT_SILENCES: ResourceType = { group: GROUP, version: VERSION, plural: 'heartbeatsilences' }
/** Of the CustomResourceDefinition. */
export const DEFINITION_NAME = `${HEARTBEAT_CHECKS.plural}.${GROUP}`

/** Owns what the operator writes in objects; the status of a HeartbeatCheck has an owner of its own. */
export const FIELD_MANAGER = 'heartbeat-operator'
export const STATUS_FIELD_MANAGER = 'heartbeat-operator-status'
export const LEASE_NAME = 'heartbeat-operator'
/** The RoleBinding by which the administrator of a namespace grants the right to publish there. */
export const PUBLISHER_BINDING = 'heartbeat-operator-publisher'
/**
 * What restores a right of the controller, for messages. Which roles there are depends on how the operator was
 * installed, and a change by hand would be a conflict for the next helm upgrade.
 */
export const RESTORE_RIGHTS =
  "repeat helm upgrade of the operator's release, or without Helm apply its manifests again: that restores the roles of its account"
export const FINALIZER = `${GROUP}/cleanup`
/**
 * On a published Secret or ConfigMap: the name of its HeartbeatCheck; of a name above 63 characters the beginning and a
 * hash (operator/publish/long-names.ts).
 */
export const CHECK_LABEL = `${GROUP}/check`
/** There too: the whole name, if it has more than 63 characters. */
export const CHECK_NAME_ANNOTATION = `${GROUP}/check-name`
/** On a Secret or ConfigMap of others, with the value "true": the operator may publish into it. */
export const ADOPT_ANNOTATION = `${GROUP}/adopt`
/** On a HeartbeatCheck: the id of a check of the API that it adopts. */
export const ADOPT_CHECK_ANNOTATION = `${GROUP}/adopt-check-id`
/** On a HeartbeatCheck: the time until which its check is paused. */
export const PAUSED_UNTIL_ANNOTATION = `${GROUP}/paused-until`
/** On a HeartbeatCheck: any new value requests a reconcile now. */
export const RECONCILE_ANNOTATION = `${GROUP}/reconcile-requested-at`
/** On a Lease: the id of the installation whose controllers hold it. */
export const INSTALLATION_ANNOTATION = `${GROUP}/installation`
/** On a HeartbeatCheck: the id of the installation that it is taken over from. */
export const TAKE_OVER_ANNOTATION = `${GROUP}/take-over`
/** On a Secret, with the value "true": HeartbeatChannels of its namespace may take values from it. */
export const CHANNEL_LABEL = `${GROUP}/channel`
/** On a Namespace: slugs of the projects that it may use, separated by commas. */
export const PROJECTS_ANNOTATION = `${GROUP}/projects`
/**
 * On a CronJob, or on a Namespace for all CronJobs in it: `true`, the operator creates its HeartbeatCheck; `false` on a
 * CronJob, it does not.
 */
export const WATCH_LABEL = `${GROUP}/watch`

/** On a published Secret or ConfigMap. */
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by'
/** The key of the ping URL, by default. */
export const DEFAULT_KEY = 'HEARTBEAT_URL'

/** Limits of Kubernetes. */
export const OBJECT_NAME_LENGTH = 253
export const LABEL_LENGTH = 63

/** The status holds a request to reconcile that is longer as its hash. */
export const REQUEST_LENGTH = 64
