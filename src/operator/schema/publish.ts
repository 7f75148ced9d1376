/** Where a HeartbeatCheck wants its ping URL (design, section 6, "Publishing"). */

import { z } from 'zod'
import { DEFAULT_KEY, GROUP, LABEL_LENGTH, MANAGED_BY_LABEL, OBJECT_NAME_LENGTH } from '../names.ts'
import { entries, oneOf, type Rule, text } from './fields.ts'

export const PUBLISH_KINDS = ['Secret', 'ConfigMap'] as const

/** Our own limits: enough for what other tools look for, and little enough for CEL's budget. */
const LABELS = 16
const ANNOTATIONS = 16
const ANNOTATION_LENGTH = 1_024

const SUBDOMAIN = '[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*'
const LABEL_VALUE = '[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?'
const matches = (pattern: string) => (value: string) => new RegExp(`^(${pattern})$`).test(value)

/** In every namespace the first is the cluster's; the second holds the operator's own credentials. */
const RESERVED_NAMES = ['kube-root-ca.crt', 'heartbeat-operator']

const publishKind = oneOf(
  PUBLISH_KINDS,
  'Secret or ConfigMap. Whoever knows the ping URL can report a success, and a ConfigMap is readable by many: prefer Secret. Default: Secret',
).default('Secret')

const publishName = text({
  max: OBJECT_NAME_LENGTH,
  description:
    'Name of the Secret or ConfigMap. One that exists and is not ours is left alone, unless it has the annotation heartbeat-operator.io/adopt: "true". Default: metadata.name with -heartbeat at its end. Example: nightly-backup-heartbeat',
  rules: [
    {
      cel: `self.matches('^${SUBDOMAIN}$')`,
      holds: matches(SUBDOMAIN),
      message:
        'must be a name of a Secret or ConfigMap: a-z, 0-9, - and ., beginning and ending with a letter or digit, such as nightly-backup-heartbeat',
      reason: 'FieldValueInvalid',
    },
    {
      cel: `!(self in [${RESERVED_NAMES.map((name) => `'${name}'`).join(', ')}])`,
      holds: (name) => !RESERVED_NAMES.includes(name),
      message: `must not be ${RESERVED_NAMES.join(' or ')}, which belong to the cluster and to the operator: give another, or leave it out`,
      reason: 'FieldValueForbidden',
    },
  ],
})

const publishKey = text({
  max: OBJECT_NAME_LENGTH,
  description: `Key in its data that holds the ping URL, and the name of the environment variable that envFrom makes of it. Default: ${DEFAULT_KEY}. Example: BACKUP_PING_URL`,
  rules: [
    {
      cel: "self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
      holds: matches('[A-Za-z_][A-Za-z0-9_]*'),
      message:
        'must be the name of an environment variable: letters, digits and _, not beginning with a digit, such as HEARTBEAT_URL',
      reason: 'FieldValueInvalid',
    },
  ],
}).default(DEFAULT_KEY)

const KEY_RULE: Rule<Record<string, string>> = {
  cel: `self.all(k, k.matches('^(${SUBDOMAIN}/)?${LABEL_VALUE}$'))`,
  holds: (entries) => Object.keys(entries).every(matches(`(${SUBDOMAIN}/)?${LABEL_VALUE}`)),
  message: 'must have keys such as team or example.com/team: letters, digits, -, _ and .',
  reason: 'FieldValueInvalid',
}

const labels = entries({
  max: LABELS,
  value: text({
    max: LABEL_LENGTH,
    description: `Value of the label, at most ${LABEL_LENGTH} characters.`,
    rules: [
      {
        cel: `self.matches('^(${LABEL_VALUE})?$')`,
        holds: matches(`(${LABEL_VALUE})?`),
        message:
          'must be the value of a label: letters, digits, -, _ and ., beginning and ending with a letter or digit',
        reason: 'FieldValueInvalid',
      },
    ],
  }),
  description: `Labels that the Secret or ConfigMap gets besides our own, at most ${LABELS}. Default: none.`,
  rules: [
    KEY_RULE,
    {
      cel: `self.all(k, !k.startsWith('${GROUP}/') && k != '${MANAGED_BY_LABEL}')`,
      holds: (labels) => Object.keys(labels).every((key) => !key.startsWith(`${GROUP}/`) && key !== MANAGED_BY_LABEL),
      message: `must not hold ${MANAGED_BY_LABEL} nor a key that begins with ${GROUP}/: these are set by the operator`,
      reason: 'FieldValueForbidden',
    },
  ],
})

const annotations = entries({
  max: ANNOTATIONS,
  value: text({
    max: ANNOTATION_LENGTH,
    description: `Value of the annotation, at most ${ANNOTATION_LENGTH} characters.`,
  }),
  description: `Annotations that the Secret or ConfigMap gets, at most ${ANNOTATIONS}. Default: none.`,
  rules: [
    KEY_RULE,
    {
      cel: `self.all(k, !k.startsWith('${GROUP}/'))`,
      holds: (annotations) => Object.keys(annotations).every((key) => !key.startsWith(`${GROUP}/`)),
      message: `must not hold a key that begins with ${GROUP}/: these steer the operator`,
      reason: 'FieldValueForbidden',
    },
  ],
})

export const publish = z.object(
  {
    kind: publishKind,
    name: publishName.optional(),
    key: publishKey,
    labels: labels.optional(),
    annotations: annotations.optional(),
  },
  'must be an object',
)
