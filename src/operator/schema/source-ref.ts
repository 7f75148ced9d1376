/**
 * spec.sourceRef: what a HeartbeatCheck follows instead of a schedule of its own (design, section 6, "CronJobs"). No
 * name of a field or of a reason holds a kind: another kind of source is another value of `apiGroup` and `kind`.
 */

import { z } from 'zod'
import { OBJECT_NAME_LENGTH } from '../names.ts'
import { SOURCE_GROUPS, SOURCE_KINDS } from '../sources/source-kinds.ts'
import { oneOf, type Rule, SUBDOMAIN, shaped, text } from './fields.ts'

const KIND = SOURCE_KINDS.join(' or ')

export const sourceRef = z
  .object(
    {
      apiGroup: oneOf(
        SOURCE_GROUPS,
        `API group of the source: ${SOURCE_GROUPS.join(' or ')}. Default: batch. Further values may be added`,
      ).default('batch'),
      kind: oneOf(SOURCE_KINDS, `Kind of the source: ${KIND}. Further values may be added`),
      name: text({
        max: OBJECT_NAME_LENGTH,
        description: 'Name of the source, in this namespace.',
        rules: [shaped(SUBDOMAIN, `must be the name of a ${KIND}, such as nightly-backup`)],
      }),
    },
    'must be an object',
  )
  .meta({ 'x-kubernetes-map-type': 'atomic' })

export type SourceRef = Readonly<z.output<typeof sourceRef>>

/** What the source decides. */
interface WithSource {
  readonly sourceRef?: unknown
  readonly publish?: { readonly kind?: unknown } | undefined
  readonly schedule?: unknown
  readonly periodSeconds?: unknown
  readonly timeZone?: unknown
  readonly suspend?: unknown
}

const TAKEN = ['schedule', 'periodSeconds', 'timeZone', 'suspend'] as const

/** On the whole spec: a rule on the field itself would not run when the field is added or removed. */
export const SOURCE_RULES: readonly Rule<WithSource>[] = [
  {
    cel: `!has(self.sourceRef) || !(${TAKEN.map((field) => `has(self.${field})`).join(' || ')})`,
    holds: (spec) => spec.sourceRef === undefined || TAKEN.every((field) => spec[field] === undefined),
    message: `schedule, periodSeconds, timeZone and suspend are taken from the ${KIND}: leave them out`,
    isSentence: true,
    reason: 'FieldValueForbidden',
  },
  {
    // Where no source reports, the kind has a default. Beside a source, the default of spec.publish is that nothing is
    // published.
    cel: '!has(self.sourceRef) || !has(self.publish) || has(self.publish.kind)',
    holds: ({ sourceRef, publish }) => sourceRef === undefined || publish === undefined || publish.kind !== undefined,
    message: 'must be given beside spec.sourceRef: Secret, ConfigMap or None',
    fieldPath: '.publish.kind',
    reason: 'FieldValueRequired',
  },
  {
    cel: 'has(self.sourceRef) == has(oldSelf.sourceRef) && (!has(self.sourceRef) || self.sourceRef == oldSelf.sourceRef)',
    message: 'cannot be changed, added or removed: delete this HeartbeatCheck and create it again',
    fieldPath: '.sourceRef',
    reason: 'FieldValueForbidden',
  },
]
