/** Cases of metadata and spec. */

import { LIMITS } from '../../../src/domain/limits.ts'
import { aCase, bounds, longest, mostEntries, type RuleCase, shape, withPeriod } from './rule-case.ts'

const publish = (fields: object) => withPeriod({ publish: fields })
const withTags = (tags: readonly string[]) => withPeriod({ tags })
const withNames = (dependsOn: readonly string[]) => withPeriod({ dependsOn })
const withCodes = (warnExitCodes: readonly number[]) => withPeriod({ warnExitCodes })
const manyTags = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`)
const manyCodes = (count: number) => Array.from({ length: count }, (_, index) => index + 1)
const scheduled = (schedule: string, fields: object = {}) => ({ spec: { schedule, ...fields } })

const TEXTS: readonly RuleCase[] = [
  aCase('', 'required spec', withPeriod({}), { spec: undefined }, { says: 'Required value', at: 'spec' }),
  longest('spec.displayName', LIMITS.nameLength, (displayName) => withPeriod({ displayName }), '😀'),
  aCase(
    'spec.displayName',
    'must not be empty: give a name, or leave the field out to use metadata.name',
    withPeriod({ displayName: ' Nightly backup\n' }),
    withPeriod({ displayName: ' ' }),
  ),
  aCase(
    'spec.displayName',
    'must be one line, without control characters',
    withPeriod({ displayName: 'Sauvegarde de nuit – 🌙' }),
    withPeriod({ displayName: 'Nightly\u0007backup' }),
  ),
  aCase(
    'spec.displayName',
    'must not hold characters that change the direction of text: they make a name look like another',
    withPeriod({ displayName: 'גיבוי לילי' }),
    withPeriod({ displayName: 'Nightly \u202epukcab' }),
  ),
  longest('spec.description', LIMITS.descriptionLength, (description) => withPeriod({ description }), 'é'),
  aCase(
    'spec.description',
    'must have no control characters other than line breaks and tabs',
    withPeriod({ description: 'Two\r\n\tlines' }),
    withPeriod({ description: 'NUL \u0000 ends text' }),
  ),
  aCase('spec.tags', 'maxItems', withTags(manyTags(20)), withTags(manyTags(21)), {
    says: 'Too many: 21: must have at most 20 items',
  }),
  aCase('spec.tags', 'x-kubernetes-list-type', withTags(['a', 'A']), withTags(['a', 'b', 'a']), {
    says: 'Duplicate value',
    at: 'spec.tags[2]',
  }),
  longest('spec.tags[]', 50, (tag) => withTags([tag]), 'n', { at: 'spec.tags[0]' }),
  ...shape(
    'spec.tags[]',
    'must be 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -',
    withTags(['aZ09_.:/-', 'x']),
    withTags(['x', '']),
    { at: 'spec.tags[1]' },
  ),
  aCase('spec.dependsOn', 'maxItems', withNames(manyTags(20)), withNames(manyTags(21)), {
    says: 'Too many: 21: must have at most 20 items',
  }),
  aCase('spec.dependsOn', 'x-kubernetes-list-type', withNames(['a', 'b']), withNames(['a', 'b', 'a']), {
    says: 'Duplicate value',
    at: 'spec.dependsOn[2]',
  }),
  longest('spec.dependsOn[]', 253, (name) => withNames([name]), 'n', { at: 'spec.dependsOn[0]' }),
  ...shape(
    'spec.dependsOn[]',
    'must be the name of a HeartbeatCheck, such as database',
    withNames(['main.database-2']),
    withNames(['a', 'Database']),
    { at: 'spec.dependsOn[1]' },
  ),
  longest('spec.project', LIMITS.slugLength, (project) => withPeriod({ project })),
  ...shape(
    'spec.project',
    'must be the slug of a project: a-z, 0-9, - and _, beginning and ending with a letter or digit',
    withPeriod({ project: 'pay_ments-2' }),
    withPeriod({ project: 'Payments' }),
  ),
  aCase(
    'spec.deletionPolicy',
    'enum',
    withPeriod({ deletionPolicy: 'Retain' }),
    withPeriod({ deletionPolicy: 'Orphan' }),
    { says: 'Unsupported value: "Orphan": supported values: "Delete", "Retain"' },
  ),
]

const TIMES: readonly RuleCase[] = [
  aCase('spec', 'give spec.periodSeconds, spec.schedule or spec.sourceRef', withPeriod({}), {
    spec: { graceSeconds: 60 },
  }),
  aCase(
    'spec',
    'must be left out beside spec.periodSeconds: keep one of the two',
    scheduled('0 2 * * *'),
    withPeriod({ schedule: '0 2 * * *' }),
    { at: 'spec.schedule' },
  ),
  aCase(
    'spec',
    'must be left out without spec.schedule: a period is the same in every time zone',
    scheduled('0 2 * * *', { timeZone: 'Europe/Berlin' }),
    withPeriod({ timeZone: 'Europe/Berlin' }),
    { at: 'spec.timeZone' },
  ),
  ...bounds('spec.periodSeconds', LIMITS.periodSeconds, (periodSeconds) => ({ spec: { periodSeconds } })),
  ...bounds('spec.graceSeconds', LIMITS.graceSeconds, (graceSeconds) => withPeriod({ graceSeconds })),
  ...bounds('spec.maxRuntimeSeconds', LIMITS.maxRuntimeSeconds, (maxRuntimeSeconds) =>
    withPeriod({ maxRuntimeSeconds }),
  ),
  aCase('spec.warnExitCodes', 'maxItems', withCodes(manyCodes(20)), withCodes(manyCodes(21)), {
    says: 'Too many: 21: must have at most 20 items',
  }),
  aCase('spec.warnExitCodes', 'x-kubernetes-list-type', withCodes([3, 24]), withCodes([3, 24, 3]), {
    says: 'Duplicate value',
    at: 'spec.warnExitCodes[2]',
  }),
  ...bounds(
    'spec.warnExitCodes[]',
    { min: 1, max: LIMITS.exitCode },
    (code) => withCodes([3, code]),
    'spec.warnExitCodes[1]',
  ),
  ...bounds('spec.failuresBeforeDown', LIMITS.threshold, (failuresBeforeDown) => withPeriod({ failuresBeforeDown })),
  ...bounds('spec.missesBeforeDown', LIMITS.threshold, (missesBeforeDown) => withPeriod({ missesBeforeDown })),
  ...bounds('spec.remindEverySeconds', LIMITS.remindEverySeconds, (remindEverySeconds) =>
    withPeriod({ remindEverySeconds }),
  ),
  longest('spec.schedule', LIMITS.scheduleLength, (spaces) => scheduled(`0 2 * * *${spaces.slice(9)}`), ' '),
  aCase(
    'spec.schedule',
    'must not hold a time zone: give it as spec.timeZone, beside the schedule',
    scheduled('0 2 * * *', { timeZone: 'UTC' }),
    scheduled('CRON_TZ=UTC 0 2 * * *'),
  ),
  aCase(
    'spec.schedule',
    'must not be @every, which has no fixed times of day: give spec.periodSeconds instead of a schedule',
    scheduled('@daily'),
    scheduled('@every 5m'),
  ),
  ...shape(
    'spec.schedule',
    'must have 5 fields (minute, hour, day of month, month, day of week) such as "30 2 * * *", or be one of @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually',
    scheduled(' */15\t8-18,,20 1,15 JAN-jun ?/1\n'),
    scheduled('0 2 * *'),
  ),
  longest('spec.timeZone', LIMITS.nameLength, (timeZone) => scheduled('@daily', { timeZone })),
  ...shape(
    'spec.timeZone',
    'must be the name of an IANA time zone such as Europe/Berlin or Etc/UTC',
    scheduled('@daily', { timeZone: 'America/Argentina/Buenos_Aires' }),
    scheduled('@daily', { timeZone: 'Central European Time' }),
  ),
]

const KEYS =
  'must have keys such as team or example.com/team: up to 63 letters, digits, -, _ and ., after a prefix or without one'

const PUBLISHING: readonly RuleCase[] = [
  aCase('spec.publish.kind', 'enum', publish({ kind: 'None' }), publish({ kind: 'Pod' }), {
    says: 'Unsupported value: "Pod": supported values: "Secret", "ConfigMap", "None"',
  }),
  ...[{ name: 'x' }, { key: 'X' }, { labels: {} }, { annotations: {} }].map((fields) =>
    aCase(
      'spec.publish',
      'must not have name, key, labels or annotations with kind None, which publishes nothing',
      publish(fields),
      publish({ kind: 'None', ...fields }),
    ),
  ),
  longest('spec.publish.name', 253, (name) => publish({ name })),
  ...shape(
    'spec.publish.name',
    'must be a name of a Secret or ConfigMap: a-z, 0-9, - and ., beginning and ending with a letter or digit, such as nightly-backup-heartbeat',
    publish({ name: 'a.b-c.0' }),
    publish({ name: 'a..b' }),
  ),
  longest('spec.publish.key', 253, (key) => publish({ key })),
  ...shape(
    'spec.publish.key',
    'must be the name of an environment variable: letters, digits and _, not beginning with a digit, such as HEARTBEAT_URL',
    publish({ key: '_ping_URL2' }),
    publish({ key: 'ping-url' }),
  ),
  mostEntries('spec.publish.labels', 16, (labels) => publish({ labels })),
  aCase(
    'spec.publish.labels',
    KEYS,
    publish({ labels: { 'example.com/Team_a': 'x', ['n'.repeat(63)]: '' } }),
    publish({ labels: { 'my team': 'x' } }),
  ),
  aCase(
    'spec.publish.labels',
    'must not hold app.kubernetes.io/managed-by nor a key that begins with heartbeat-operator.io/: these are set by the operator',
    publish({ labels: { 'app.kubernetes.io/name': 'backup' } }),
    publish({ labels: { 'heartbeat-operator.io/check': 'another' } }),
  ),
  longest('spec.publish.labels.*', 63, (team) => publish({ labels: { team } }), 'n', {
    at: 'spec.publish.labels.team',
  }),
  ...shape(
    'spec.publish.labels.*',
    'must be the value of a label: letters, digits, -, _ and ., beginning and ending with a letter or digit',
    publish({ labels: { team: '', tier: 'A_b.c-1' } }),
    publish({ labels: { team: 'data platform' } }),
    { at: 'spec.publish.labels[team]' },
  ),
  mostEntries('spec.publish.annotations', 16, (annotations) => publish({ annotations })),
  aCase(
    'spec.publish.annotations',
    KEYS,
    publish({ annotations: { 'reflector.example.com/allowed': 'a b,c' } }),
    publish({ annotations: { [`example.com/${'n'.repeat(64)}`]: '' } }),
  ),
  aCase(
    'spec.publish.annotations',
    'must not hold a key that begins with heartbeat-operator.io/: these steer the operator',
    publish({ annotations: { 'heartbeat-operator.io.example.com/x': '' } }),
    publish({ annotations: { 'heartbeat-operator.io/adopt': 'true' } }),
  ),
  longest('spec.publish.annotations.*', 1_024, (a) => publish({ annotations: { a } }), 'n', {
    at: 'spec.publish.annotations.a',
  }),
]

const followed = (sourceRef: object, fields: object = {}) => ({ spec: { sourceRef, ...fields } })
const CRON_JOB = { kind: 'CronJob', name: 'nightly-backup' }
const TAKEN = 'schedule, periodSeconds, timeZone and suspend are taken from the CronJob: leave them out'

const FOLLOWING: readonly RuleCase[] = [
  ...[{ schedule: '@daily' }, { periodSeconds: 60 }, { timeZone: 'UTC' }, { suspend: false }].map((taken) =>
    aCase(
      'spec',
      TAKEN,
      followed(CRON_JOB, { graceSeconds: 60, maxRuntimeSeconds: 60, displayName: 'x', publish: { kind: 'Secret' } }),
      followed(CRON_JOB, taken),
    ),
  ),
  ...[{}, { name: 'x' }, { key: 'X', labels: {} }].map((publish) =>
    aCase(
      'spec',
      'must be given beside spec.sourceRef: Secret, ConfigMap or None',
      followed(CRON_JOB, { publish: { kind: 'ConfigMap', ...publish } }),
      followed(CRON_JOB, { publish }),
      { at: 'spec.publish.kind' },
    ),
  ),
  aCase('spec.sourceRef', 'required kind', followed(CRON_JOB), followed({ name: 'a' }), {
    says: 'Required value',
    at: 'spec.sourceRef.kind',
  }),
  aCase('spec.sourceRef', 'required name', followed(CRON_JOB), followed({ kind: 'CronJob' }), {
    says: 'Required value',
    at: 'spec.sourceRef.name',
  }),
  aCase(
    'spec.sourceRef.apiGroup',
    'enum',
    followed({ apiGroup: 'batch', ...CRON_JOB }),
    followed({ apiGroup: '', ...CRON_JOB }),
    { says: 'Unsupported value: "": supported values: "batch"' },
  ),
  aCase('spec.sourceRef.kind', 'enum', followed(CRON_JOB), followed({ ...CRON_JOB, kind: 'Job' }), {
    says: 'Unsupported value: "Job": supported values: "CronJob"',
  }),
  longest('spec.sourceRef.name', 253, (name) => followed({ kind: 'CronJob', name })),
  ...shape(
    'spec.sourceRef.name',
    'must be the name of a CronJob, such as nightly-backup',
    followed({ kind: 'CronJob', name: 'a.b-c' }),
    followed({ kind: 'CronJob', name: 'Backup' }),
  ),
]

export const SPEC_CASES: readonly RuleCase[] = [...TEXTS, ...TIMES, ...PUBLISHING, ...FOLLOWING]

/** A rule on a change: from `before` to either. */
export const PROJECT_RULE = {
  field: 'spec',
  rule: 'cannot be changed, added or removed: to use another project, delete this HeartbeatCheck and create it again',
  at: 'spec.project',
}
/** Another one. */
export const SOURCE_RULE = {
  field: 'spec',
  rule: 'cannot be changed, added or removed: delete this HeartbeatCheck and create it again',
  at: 'spec.sourceRef',
}
