/** Cases of status, which the operator alone writes. */

import { aCase, longest, type RuleCase, withPeriod } from './rule-case.ts'

const AT = '2026-03-01T02:10:00Z'
const CONDITION = { type: 'Ready', status: 'True', reason: 'Synced', message: '', lastTransitionTime: AT }

const status = (fields: object) => ({ ...withPeriod({}), status: fields as Record<string, unknown> })
const condition = (fields: object) => status({ conditions: [{ ...CONDITION, ...fields }] })
const conditions = (count: number) =>
  status({ conditions: Array.from({ length: count }, (_, index) => ({ ...CONDITION, type: `T${index}` })) })

const required = (field: string): RuleCase =>
  aCase('status.conditions[]', `required ${field}`, condition({}), condition({ [field]: undefined }), {
    says: 'Required value',
    at: `status.conditions[0].${field}`,
  })

const time = (field: string, place: (value: string) => ReturnType<typeof status>, at = field): RuleCase =>
  aCase(field, 'format', place(AT.replace('Z', '.123Z')), place('yesterday'), {
    says: 'must be of type date-time: "yesterday"',
    at,
  })

const inCondition = (field: string) => ({ at: `status.conditions[0].${field}` })

const SOURCE = { apiGroup: 'batch', kind: 'CronJob', name: 'x', uid: 'u', suspended: false }
const source = (fields: object) => status({ source: { ...SOURCE, ...fields } })
const lastRun = (fields: object) => status({ lastRun: { name: 'x-1', outcome: 'Running', ...fields } })
const requiredIn = (field: string, name: string, place: (fields: object) => ReturnType<typeof status>): RuleCase =>
  aCase(field, `required ${name}`, place({}), place({ [name]: undefined }), {
    says: 'Required value',
    at: `${field}.${name}`,
  })
const names = (count: number) => Array.from({ length: count }, (_, index) => `x-${index}`)

const SOURCE_CASES: readonly RuleCase[] = [
  ...['apiGroup', 'kind', 'name', 'uid', 'suspended'].map((name) => requiredIn('status.source', name, source)),
  longest('status.source.apiGroup', 253, (apiGroup) => source({ apiGroup })),
  longest('status.source.kind', 63, (kind) => source({ kind })),
  longest('status.source.name', 253, (name) => source({ name })),
  longest('status.source.uid', 64, (uid) => source({ uid })),
  time('status.source.lastScheduleTime', (lastScheduleTime) => source({ lastScheduleTime })),
  aCase('status.source.active', 'maxItems', source({ active: names(20) }), source({ active: names(21) }), {
    says: 'must have at most 20 items',
  }),
  longest('status.source.active[]', 253, (name) => source({ active: [name] }), 'n', { at: 'status.source.active[0]' }),
]

const LAST_RUN_CASES: readonly RuleCase[] = [
  ...['name', 'outcome'].map((name) => requiredIn('status.lastRun', name, lastRun)),
  longest('status.lastRun.name', 253, (name) => lastRun({ name })),
  longest('status.lastRun.outcome', 63, (outcome) => lastRun({ outcome })),
  time('status.lastRun.startTime', (startTime) => lastRun({ startTime })),
  time('status.lastRun.completionTime', (completionTime) => lastRun({ completionTime })),
  aCase('status.lastRun.exitCode', 'minimum', lastRun({ exitCode: 0 }), lastRun({ exitCode: -1 }), {
    says: 'should be greater than or equal to 0',
  }),
  longest('status.lastRun.reason', 1_024, (reason) => lastRun({ reason })),
  longest('status.lastRun.message', 1_024, (message) => lastRun({ message })),
]

export const STATUS_CASES: readonly RuleCase[] = [
  aCase('status.observedGeneration', 'minimum', status({ observedGeneration: 0 }), status({ observedGeneration: -1 }), {
    says: 'should be greater than or equal to 0',
  }),
  longest('status.installation', 36, (installation) => status({ installation })),
  longest('status.checkId', 36, (checkId) => status({ checkId })),
  longest('status.slug', 100, (slug) => status({ slug })),
  longest('status.state', 63, (state) => status({ state })),
  time('status.stateTime', (stateTime) => status({ stateTime })),
  longest('status.reason', 63, (reason) => status({ reason })),
  longest('status.schedule', 200, (schedule) => status({ schedule })),
  longest('status.cadence', 200, (cadence) => status({ cadence })),
  aCase('status.periodSeconds', 'minimum', status({ periodSeconds: 0 }), status({ periodSeconds: -1 }), {
    says: 'should be greater than or equal to 0',
  }),
  longest('status.timeZone', 100, (timeZone) => status({ timeZone })),
  aCase('status.graceSeconds', 'minimum', status({ graceSeconds: 0 }), status({ graceSeconds: -1 }), {
    says: 'should be greater than or equal to 0',
  }),
  time('status.lastPingTime', (lastPingTime) => status({ lastPingTime })),
  time('status.lastHandledReconcileTime', (lastHandledReconcileTime) => status({ lastHandledReconcileTime })),
  longest('status.lastHandledReconcileRequest', 64, (lastHandledReconcileRequest) =>
    status({ lastHandledReconcileRequest }),
  ),
  aCase(
    'status.published',
    'required kind',
    status({ published: { kind: 'Secret', name: 'x' } }),
    status({ published: { name: 'x' } }),
    { says: 'Required value', at: 'status.published.kind' },
  ),
  aCase(
    'status.published',
    'required name',
    status({ published: { kind: 'Secret', name: 'x' } }),
    status({ published: { kind: 'Secret' } }),
    { says: 'Required value', at: 'status.published.name' },
  ),
  longest('status.published.kind', 63, (kind) => status({ published: { kind, name: 'x' } })),
  longest('status.published.name', 253, (name) => status({ published: { kind: 'Secret', name } })),
  ...SOURCE_CASES,
  ...LAST_RUN_CASES,
  aCase('status.conditions', 'maxItems', conditions(16), conditions(17), { says: 'must have at most 16 items' }),
  ...['type', 'status', 'reason', 'message', 'lastTransitionTime'].map(required),
  longest('status.conditions[].type', 316, (type) => condition({ type }), 'T', inCondition('type')),
  aCase(
    'status.conditions[].type',
    'pattern',
    condition({ type: 'example.com/Ready' }),
    condition({ type: 'not ready' }),
    { says: 'should match', ...inCondition('type') },
  ),
  aCase('status.conditions[].status', 'enum', condition({ status: 'Unknown' }), condition({ status: 'Maybe' }), {
    says: 'supported values: "True", "False", "Unknown"',
    ...inCondition('status'),
  }),
  aCase('status.conditions[].reason', 'minLength', condition({ reason: 'R' }), condition({ reason: '' }), {
    says: 'should be at least 1 chars long',
    ...inCondition('reason'),
  }),
  longest('status.conditions[].reason', 1_024, (reason) => condition({ reason }), 'R', inCondition('reason')),
  aCase('status.conditions[].reason', 'pattern', condition({ reason: 'OnTime' }), condition({ reason: 'on time' }), {
    says: 'should match',
    ...inCondition('reason'),
  }),
  longest('status.conditions[].message', 32_768, (message) => condition({ message }), 'm', inCondition('message')),
  time(
    'status.conditions[].lastTransitionTime',
    (lastTransitionTime) => condition({ lastTransitionTime }),
    'status.conditions[0].lastTransitionTime',
  ),
  aCase(
    'status.conditions[].observedGeneration',
    'minimum',
    condition({ observedGeneration: 0 }),
    condition({ observedGeneration: -1 }),
    { says: 'should be greater than or equal to 0', ...inCondition('observedGeneration') },
  ),
  aCase(
    'status.conditions',
    'x-kubernetes-list-map-keys',
    status({ conditions: [CONDITION, { ...CONDITION, type: 'Up' }] }),
    status({ conditions: [CONDITION, CONDITION] }),
    { says: 'Duplicate value', at: 'status.conditions[1]' },
  ),
]
