/** The CustomResourceDefinition of HeartbeatCheck, made from its schema. `npm run manifests` writes it to crds/ and manifests/. */

import { z } from 'zod'
import { HEARTBEAT_CHECKS, KIND } from '../names.ts'
import { describeRules } from './fields.ts'
import { NAME_RULE, Spec } from './spec.ts'
import { Status } from './status.ts'

type Json = Record<string, unknown>

const { group, version, plural } = HEARTBEAT_CHECKS

const ready = (field: string) => `.status.conditions[?(@.type=="Ready")].${field}`

export const RESOURCE_DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}`, labels: { 'app.kubernetes.io/name': 'heartbeat-operator' } },
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
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        subresources: { status: {} },
        additionalPrinterColumns: [
          column('State', 'string', '.status.state', 'State of the job: new, up, late, down or paused.'),
          column(
            'Ready',
            'string',
            ready('status'),
            'Whether the service holds this spec and the ping URL is published.',
          ),
          // A check has one of the two; kubectl shows the first that it finds.
          column(
            'Schedule',
            'string',
            ".spec['schedule','periodSeconds']",
            'Cron expression, or the period in seconds.',
          ),
          column('Grace', 'integer', '.spec.graceSeconds', 'Seconds that a completion may be late.'),
          column('Last Ping', 'date', '.status.lastPingTime', 'When the job last completed.'),
          column('Age', 'date', '.metadata.creationTimestamp', 'When the resource was created.'),
          { ...column('Reason', 'string', ready('reason'), 'Why the resource is ready or not ready.'), priority: 1 },
          {
            ...column('Published', 'string', '.status.published.name', 'Secret or ConfigMap that holds the ping URL.'),
            priority: 1,
          },
        ],
        selectableFields: [{ jsonPath: '.spec.project' }, { jsonPath: '.spec.suspend' }, { jsonPath: '.status.state' }],
        schema: { openAPIV3Schema: describeResource() },
      },
    ],
  },
}

function column(name: string, type: string, jsonPath: string, description: string): Json {
  return { name, type, jsonPath, description }
}

function describeResource(): Json {
  return {
    description:
      'A scheduled job to monitor. The job reports to a ping URL, which the operator publishes in a Secret or ConfigMap. An alert is sent when a report is missing.',
    type: 'object',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: `${group}/${version}` },
      kind: { type: 'string', description: KIND },
      // The field at fault that a rule names must be in the schema.
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: describeSchema(Spec),
      status: describeSchema(Status),
    },
    ...describeRules([NAME_RULE]),
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
