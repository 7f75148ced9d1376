/**
 * The CustomResourceDefinition of HeartbeatCheck, made from its schema. `npm run manifests` writes it to crds/ and
 * manifests/.
 */

import { z } from 'zod'
import { API_VERSION, DEFINITION_NAME, HEARTBEAT_CHECKS, KIND, VERSION } from '../names.ts'
import { Spec } from './spec.ts'
import { Status } from './status.ts'

type Json = Record<string, unknown>

const { group, plural } = HEARTBEAT_CHECKS

const READY = '.status.conditions[?(@.type=="Ready")].status'

export const RESOURCE_DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: DEFINITION_NAME, labels: { 'app.kubernetes.io/name': 'heartbeat-operator' } },
  spec: {
    group,
    scope: 'Namespaced',
    names: {
      kind: KIND,
      listKind: `${KIND}List`,
      plural,
      singular: 'heartbeatcheck',
      shortNames: ['hbc'],
      categories: ['heartbeats'],
    },
    conversion: { strategy: 'None' },
    versions: [describeVersion()],
  },
}

function describeVersion() {
  return {
    name: VERSION,
    served: true,
    storage: true,
    subresources: { status: {} },
    additionalPrinterColumns: [
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
    selectableFields: [{ jsonPath: '.spec.project' }, { jsonPath: '.spec.suspend' }, { jsonPath: '.status.state' }],
    schema: { openAPIV3Schema: describeResource() },
  }
}

function column(name: string, type: string, jsonPath: string, description: string): Json {
  return { name, type, jsonPath, description }
}

/** Shown with `-o wide`. */
function wide(...given: Parameters<typeof column>): Json {
  return { ...column(...given), priority: 1 }
}

function describeResource(): Json {
  return {
    description:
      'A scheduled job to monitor: an alert is sent when a report of the job is missing. The job reports to a ping URL, which the operator publishes in a Secret or ConfigMap, or the check follows a CronJob.',
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: API_VERSION },
      kind: { type: 'string', description: KIND },
      metadata: { type: 'object' },
      spec: describeSchema(Spec),
      status: describeSchema(Status),
    },
  }
}

/** `input`: before defaults are set and white space is removed. */
function describeSchema(schema: z.ZodType): Json {
  return z.toJSONSchema(schema, { io: 'input', target: 'openapi-3.0', override: tidy }) as Json
}

/** zod gives an integer without an upper bound that of JavaScript. */
function tidy({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}
