/** spec.publish: where the operator writes the ping URL (design, section 6, "Publishing"). */

import { z } from 'zod'
import { DEFAULT_KEY, GROUP, LABEL_LENGTH, MANAGED_BY_LABEL, OBJECT_NAME_LENGTH } from '../names.ts'
import { entries, LABEL_KEYS, LABEL_VALUE, oneOf, SUBDOMAIN, shaped, text, withRules } from './fields.ts'

export const PUBLISH_KINDS = ['Secret', 'ConfigMap', 'None'] as const

/** Our own limits: enough for the keys that other tools look for, and within CEL's cost budget. */
const LABELS = 16
const ANNOTATIONS = 16
const ANNOTATION_LENGTH = 1_024

const publishKind = oneOf(
  PUBLISH_KINDS,
  'Secret, ConfigMap, or None for nowhere; further values may be added. Prefer a Secret: who knows the ping URL can report a success, and many people can read a ConfigMap. Default: Secret; beside spec.sourceRef the field is required',
)

const publishName = text({
  max: OBJECT_NAME_LENGTH,
  description:
    'Name of the Secret or ConfigMap. The operator changes an object that it did not create only if the object has the annotation heartbeat-operator.io/adopt: "true". Default: metadata.name with the suffix -heartbeat',
  rules: [
    shaped(
      SUBDOMAIN,
      'must be a name of a Secret or ConfigMap: a-z, 0-9, - and ., beginning and ending with a letter or digit, such as nightly-backup-heartbeat',
    ),
  ],
})

const publishKey = text({
  max: OBJECT_NAME_LENGTH,
  description: `Key of the Secret or ConfigMap that holds the ping URL; with envFrom, the environment variable. Default: ${DEFAULT_KEY}. Example: BACKUP_PING_URL`,
  rules: [
    shaped(
      '[A-Za-z_][A-Za-z0-9_]*',
      'must be the name of an environment variable: letters, digits and _, not beginning with a digit, such as HEARTBEAT_URL',
    ),
  ],
})

const labels = entries({
  max: LABELS,
  value: text({
    max: LABEL_LENGTH,
    description: `Value of the label, at most ${LABEL_LENGTH} characters.`,
    rules: [LABEL_VALUE],
  }),
  description: `Labels of a Secret or ConfigMap that the operator creates, beside its own; at most ${LABELS}. Default: none.`,
  rules: [
    LABEL_KEYS,
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
  description: `Annotations of a Secret or ConfigMap that the operator creates; at most ${ANNOTATIONS}. Default: none.`,
  rules: [
    LABEL_KEYS,
    {
      cel: `self.all(k, !k.startsWith('${GROUP}/'))`,
      holds: (annotations) => Object.keys(annotations).every((key) => !key.startsWith(`${GROUP}/`)),
      message: `must not hold a key that begins with ${GROUP}/: these steer the operator`,
      reason: 'FieldValueForbidden',
    },
  ],
})

const fields = z.object(
  {
    kind: publishKind.optional(),
    name: publishName.optional(),
    key: publishKey.optional(),
    labels: labels.optional(),
    annotations: annotations.optional(),
  },
  'must be an object',
)

const OF_AN_OBJECT = ['name', 'key', 'labels', 'annotations'] as const

export const publish = withRules(
  fields,
  [
    {
      cel: `!has(self.kind) || self.kind != 'None' || !(${OF_AN_OBJECT.map((field) => `has(self.${field})`).join(' || ')})`,
      holds: (target) => target.kind !== 'None' || OF_AN_OBJECT.every((field) => target[field] === undefined),
      message: 'must not have name, key, labels or annotations with kind None, which publishes nothing',
      reason: 'FieldValueForbidden',
    },
  ],
  {},
)
