/** The HeartbeatCheck of a check, as a manifest that a user changes and applies. */

import type { CheckRecord } from '../../../../checks/find-checks.ts'
import { FOLLOWED_DEFAULTS, LIMIT_WORDS } from '../../../../domain/followed-defaults.ts'
import { sortLabels } from '../../../../domain/labels.ts'
import { LIMITS } from '../../../../domain/limits.ts'
import { yamlText } from './literals.ts'

interface DeclaredCheck
  extends Pick<CheckRecord, 'cronJob' | 'kubernetes' | 'name' | 'description' | 'tags' | 'labels'> {
  readonly spec: Omit<CheckRecord['spec'], 'dialect'>
}

/** The API takes them, a HeartbeatCheck does not. */
const BIDI_CONTROLS = /\p{Bidi_Control}/gu

/**
 * The manifest has the current values, without those that come from a followed CronJob or by default: named, they would
 * stay when the CronJob changes. This page does not know what only the resource has (publish, project, ...).
 */
export function renderHeartbeatCheck(check: DeclaredCheck): string {
  const { kubernetes, cronJob, name, description, tags, labels, spec } = check
  const { periodSeconds, schedule, timeZone, graceSeconds, maxRuntimeSeconds, warnExitCodes } = spec
  const unlessOne = (count: number) => (count === 1 ? null : count)
  const source = cronJob === undefined ? null : `{kind: CronJob, name: ${yamlText(cronJob.name)}}`
  const isOwn = source === null
  const displayName = name.replace(BIDI_CONTROLS, '')
  const isDefault = name === kubernetes?.name.slice(0, LIMITS.nameLength)
  const fields: [string, string | number | null][] = [
    ['displayName', displayName.trim() === '' || isDefault ? null : yamlText(displayName)],
    ['description', description === null ? null : yamlText(description)],
    ['tags', tags.length === 0 ? null : `[${tags.map(yamlText).join(', ')}]`],
    // These are taken from the CronJob.
    ['sourceRef', source],
    ['periodSeconds', isOwn ? periodSeconds : null],
    ['schedule', isOwn && schedule !== null ? yamlText(schedule) : null],
    ['timeZone', isOwn && timeZone !== null ? yamlText(timeZone) : null],
    ['graceSeconds', isOwn || graceSeconds !== FOLLOWED_DEFAULTS.graceSeconds ? graceSeconds : null],
    ['maxRuntimeSeconds', cronJob === undefined || isLimitGiven(cronJob, spec) ? maxRuntimeSeconds : null],
    ['warnExitCodes', warnExitCodes.length === 0 ? null : `[${warnExitCodes.join(', ')}]`],
    ['failuresBeforeDown', unlessOne(spec.failuresBeforeDown)],
    ['missesBeforeDown', unlessOne(spec.missesBeforeDown)],
    ['remindEverySeconds', spec.remindEverySeconds],
    ['remindOnEachRun', spec.remindOnEachRun ? 'true' : null],
  ]
  const lines = fields.filter(([, value]) => value !== null).map(([field, value]) => `  ${field}: ${value}\n`)
  const pairs = Object.entries(sortLabels(labels)).map(
    ([label, value]) => `    ${yamlText(label)}: ${yamlText(value)}\n`,
  )
  return `apiVersion: heartbeat-operator.io/v1
kind: HeartbeatCheck
metadata:
  name: ${yamlText(kubernetes?.name ?? '')}
  namespace: ${yamlText(kubernetes?.namespace ?? '')}
${pairs.length === 0 ? '' : `  labels:\n${pairs.join('')}`}spec:
${lines.join('')}  # Keep the other fields of yours, such as dependsOn, publish, project, suspend and deletionPolicy.
`
}

/** Whether the resource, or an annotation that is copied to it, says how long a run may take. */
function isLimitGiven(
  { limitFrom }: NonNullable<DeclaredCheck['cronJob']>,
  { maxRuntimeSeconds }: DeclaredCheck['spec'],
): boolean {
  if (limitFrom === null) return maxRuntimeSeconds !== FOLLOWED_DEFAULTS.maxRuntimeSeconds
  return limitFrom !== LIMIT_WORDS.deadline && limitFrom !== LIMIT_WORDS.default
}
