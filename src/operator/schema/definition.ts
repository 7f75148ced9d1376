/**
 * The CustomResourceDefinitions, made from their schemas. `npm run manifests` writes them to crds/ and manifests/.
 */

import { z } from 'zod'
import type { ResourceType } from '../../kubernetes/objects.ts'
import {
  API_VERSION,
  CHANNEL_KIND,
  HEARTBEAT_CHANNELS,
  HEARTBEAT_CHECKS,
  HEARTBEAT_SILENCES,
  KIND,
  SILENCE_KIND,
} from '../names.ts'
import { ChannelSpec, ChannelStatus } from './channel.ts'
import { SilenceSpec, SilenceStatus } from './silence.ts'
import { Spec } from './spec.ts'
import { Status } from './status.ts'

type Json = Record<string, unknown>

const conditionPath = (type: string) => `.status.conditions[?(@.type=="${type}")].status`
const READY = conditionPath('Ready')

/** A sentence of a kind of channel about the API, or about what a manifest may not have. */
const OF_API = /^(Responses|Credentials in it|An update) /

interface Kind {
  readonly type: ResourceType
  readonly kind: string
  readonly shortName: string
  readonly description: string
  readonly columns: readonly Json[]
  readonly selectable: readonly string[]
  readonly spec: z.ZodType
  readonly status: z.ZodType
}

function define({ type: { group, version, plural }, kind, shortName, columns, selectable, ...texts }: Kind) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, labels: { 'app.kubernetes.io/name': 'heartbeat-operator' } },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['heartbeats'],
      },
      conversion: { strategy: 'None' },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          additionalPrinterColumns: columns,
          selectableFields: selectable.map((jsonPath) => ({ jsonPath })),
          schema: { openAPIV3Schema: describeResource(kind, texts) },
        },
      ],
    },
  }
}

export const RESOURCE_DEFINITION = define({
  type: HEARTBEAT_CHECKS,
  kind: KIND,
  shortName: 'hbc',
  description:
    'A scheduled job to monitor: an alert is sent when a report of the job is missing. The job reports to a ping URL, which the operator publishes in a Secret or ConfigMap, or the check follows a CronJob.',
  columns: [
    column('State', 'string', '.status.state', 'State of the job: new, up, late, down or paused.'),
    column('Ready', 'string', READY, 'Whether the service holds this spec and the ping URL is published.'),
    column('Schedule', 'string', '.status.cadence', 'When the job runs: a cron expression, or how often.'),
    column('Last Ping', 'date', '.status.lastPingTime', 'When the job last completed.'),
    column('Last Run', 'string', '.status.lastRun.outcome', 'How the last run ended.'),
    column('Why', 'string', '.status.reason', 'Why the job is not up.'),
    column('Age', 'date', '.metadata.creationTimestamp', 'When the resource was created.'),
    wide('Grace', 'integer', '.status.graceSeconds', 'Seconds that a completion may be late.'),
    wide('Time Zone', 'string', '.status.timeZone', 'Time zone of the cron expression.'),
    wide('Run Reason', 'string', '.status.lastRun.reason', 'Why the last run failed.'),
    wide('Published', 'string', '.status.published.name', 'Secret or ConfigMap that holds the ping URL.'),
    wide('Since', 'date', '.status.stateTime', 'When the state last changed.'),
  ],
  selectable: ['.spec.project', '.spec.suspend', '.status.state'],
  spec: Spec,
  status: Status,
})

export const CHANNEL_DEFINITION = define({
  type: HEARTBEAT_CHANNELS,
  kind: CHANNEL_KIND,
  shortName: 'hbch',
  description:
    'Where events of the checks of this namespace are sent: exactly one kind of channel. Secrets are in a Secret of the namespace, never in the manifest.',
  columns: [
    column('Kind', 'string', '.status.kind', 'The kind of the channel, such as slack.'),
    column('Ready', 'string', READY, 'Whether the service holds this spec, and the value of the Secret.'),
    column('Delivering', 'string', conditionPath('Delivering'), 'Whether what is sent arrives.'),
    column('Last Delivery', 'date', '.status.lastDeliveryTime', 'When an event was last delivered.'),
    column('Age', 'date', '.metadata.creationTimestamp', 'When the resource was created.'),
    wide('Why', 'string', '.status.conditions[?(@.type=="Ready")].reason', 'Why the resource is Ready, or not.'),
    wide('Channel', 'string', '.status.channelId', 'Id of the channel in the management API.'),
  ],
  selectable: ['.status.kind'],
  spec: ChannelSpec,
  status: ChannelStatus,
})

export const SILENCE_DEFINITION = define({
  type: HEARTBEAT_SILENCES,
  kind: SILENCE_KIND,
  shortName: 'hbs',
  description:
    'A time in which no channel is notified of HeartbeatChecks of this namespace, once, or again and again as a maintenance window. A check that is down at its end is notified then.',
  columns: [
    column('Active', 'string', conditionPath('Active'), 'Whether the silence holds now.'),
    column('Until', 'string', '.status.activeUntil', 'Until when the silence holds, if it holds now.'),
    column('Next', 'string', '.status.nextStartTime', 'When the silence begins next.'),
    column('Ready', 'string', READY, 'Whether the service holds this spec.'),
    column('Comment', 'string', '.spec.comment', 'Why there is a silence.'),
    column('Age', 'date', '.metadata.creationTimestamp', 'When the resource was created.'),
    wide('Schedule', 'string', '.spec.schedule', 'When the silence begins, again and again.'),
    wide('Time Zone', 'string', '.spec.timeZone', 'Time zone of the schedule.'),
    wide('Silence', 'string', '.status.silenceId', 'Id of the silence in the management API.'),
  ],
  selectable: ['.spec.schedule'],
  spec: SilenceSpec,
  status: SilenceStatus,
})

/** Of all kinds, by the name of the file in crds/. */
export const DEFINITIONS = {
  heartbeatchecks: RESOURCE_DEFINITION,
  heartbeatchannels: CHANNEL_DEFINITION,
  heartbeatsilences: SILENCE_DEFINITION,
} as const

function column(name: string, type: string, jsonPath: string, description: string): Json {
  return { name, type, jsonPath, description }
}

/** Shown with `-o wide`. */
function wide(...given: Parameters<typeof column>): Json {
  return { ...column(...given), priority: 1 }
}

function describeResource(
  kind: string,
  { description, spec, status }: Pick<Kind, 'description' | 'spec' | 'status'>,
): Json {
  return {
    description,
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: API_VERSION },
      kind: { type: 'string', description: kind },
      metadata: { type: 'object' },
      spec: describeSchema(spec),
      status: describeSchema(status),
    },
  }
}

/** `input`: before defaults are set and white space is removed. */
function describeSchema(schema: z.ZodType): Json {
  return z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0', override: tidy }) as Json
}

/** Structural schemas of Kubernetes have no `propertyNames`, and one form for a text or an integer. */
function tidy({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  // zod gives an integer without an upper bound that of JavaScript.
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  delete jsonSchema.propertyNames
  const sentences = jsonSchema.description?.split(/(?<=\.) /).filter((one) => !OF_API.test(one))
  if (sentences !== undefined) jsonSchema.description = sentences.join(' ')
  if (jsonSchema.anyOf === undefined) return
  delete jsonSchema.anyOf
  jsonSchema['x-kubernetes-int-or-string'] = true
}
