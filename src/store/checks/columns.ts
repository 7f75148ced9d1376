/**
 * The row of a check, declared once: the lists of selects, inserts and changes are made from these tables, and the
 * compiler rejects a table that lacks a field. A new field takes its type (domain/check.ts), a migration, its line
 * here, and what people see of it (http/api/checks.schema.ts, operator/schema/spec.ts).
 */

import { changedFields } from '../../domain/audit.ts'
import {
  type CheckSpec,
  type CheckState,
  type CheckTexts,
  type Completion,
  type Instant,
  type Manager,
  PING_SOURCES,
  PING_TYPES,
  type PingSource,
  type PingType,
  type Run,
  type Schedule,
  type ShownStatus,
  STATUSES,
  type StoredStatus,
} from '../../domain/check.ts'
import type { KeptState } from '../../domain/check-event.ts'
import type { Dialect } from '../../domain/cron.ts'
import type { EventCheck } from '../../domain/event.ts'
import type { Labels } from '../../domain/labels.ts'
import { timestamp } from '../postgres/instants.ts'
import { type Columns, fieldsOf, isSame, namesOf, pick, read } from './column-lists.ts'

/** The numbers that stand for these words in the database. */
export const statusCode = (status: StoredStatus): number => STATUSES.indexOf(status)
export const pingTypeCode = (type: PingType): number => PING_TYPES.indexOf(type)
export const pingSourceCode = (source: PingSource): number => PING_SOURCES.indexOf(source)
/** An empty list is stored as null. */
/** The usual value is stored as null: rows of checks are rewritten with each ping. */
const nullFor = <Value>(usual: Value) => ({
  encode: (value: Value) => (value === usual ? null : value),
  decode: (stored: unknown) => (stored ?? usual) as Value,
})
export const orNull = <One>(list: readonly One[]): readonly One[] | null => (list.length === 0 ? null : list)

// checks ---------------------------------------------------------------------------------------------------------------------

export interface CheckIdentity {
  readonly id: string
  readonly publicId: string
  readonly projectId: string
  readonly slug: string
  readonly createdAt: Instant
}

/** Besides the key, which has another name in each table. */
export const IDENTITY = {
  id: { type: 'uuid' },
  publicId: { type: 'uuid' },
  projectId: { type: 'uuid' },
  slug: { type: 'text' },
  createdAt: { type: 'timestamptz' },
} as const satisfies Columns<CheckIdentity>

export const TEXTS = {
  name: { type: 'text' },
  description: { type: 'text' },
  tags: { type: 'text[]' },
  labels: { type: 'jsonb' },
  channels: { type: 'uuid[]' },
  dependsOn: { type: 'uuid[]', encode: orNull, decode: (ids) => (ids as string[] | null) ?? [] },
} as const satisfies Columns<CheckTexts>

/** The resource that declares or declared a check. */
export const RESOURCE = {
  kubernetesCluster: { type: 'text' },
  kubernetesNamespace: { type: 'text' },
  kubernetesName: { type: 'text' },
} as const

/** How a resource came to its check, and where it is. Null: unknown. */
export interface CheckOrigin {
  /** The check was made through the API, and stays in its project. */
  readonly kubernetesAdopted: boolean | null
  /** That of the Namespace. */
  readonly kubernetesNamespaceUid: string | null
  /** That of the Namespace kube-system. */
  readonly kubernetesClusterUid: string | null
}

export const ORIGIN = {
  kubernetesAdopted: { type: 'bool' },
  kubernetesNamespaceUid: { type: 'text' },
  kubernetesClusterUid: { type: 'text' },
} as const satisfies Columns<CheckOrigin>

export const NO_ORIGIN: CheckOrigin = {
  kubernetesAdopted: null,
  kubernetesNamespaceUid: null,
  kubernetesClusterUid: null,
}

export interface CheckOwner extends Readonly<Record<keyof typeof RESOURCE, string | null>>, CheckOrigin {
  readonly managedBy: Manager
  readonly kubernetesSuspend: boolean | null
}

export const OWNER = {
  managedBy: { type: 'text' },
  ...RESOURCE,
  kubernetesSuspend: { type: 'bool' },
  ...ORIGIN,
} as const satisfies Columns<CheckOwner>

export interface CheckConfigured {
  /** When its configuration changed last; at first its creation. */
  readonly updatedAt: Instant
  /** A client of healthchecks' API gave an empty slug, and sees it: the slug was made here. */
  readonly slugLeftEmpty: boolean
}

export const CONFIGURED = {
  updatedAt: { type: 'timestamptz' },
  slugLeftEmpty: { type: 'bool' },
} as const satisfies Columns<CheckConfigured>

/** All of `checks` but the key. */
export const CHECK = { ...IDENTITY, ...TEXTS, ...OWNER, ...CONFIGURED }
export interface CheckFields extends CheckIdentity, CheckTexts, CheckOwner, CheckConfigured {}

/** The fields of `checks`, called `c`, in the check of an event, as arguments of jsonb_build_object. */
const EVENT_FIELDS = ['id', 'slug', 'name', 'tags', 'labels'] satisfies (keyof EventCheck & keyof CheckFields)[]
export const EVENT_PAIRS = EVENT_FIELDS.map((field) => `'${field}', c.${field}`).join(', ')

/** `shownStatus` (domain/check.ts) in SQL, over a row `s` of check_states. `now`: a time in SQL. `toSql`: what stands for a status, its name. */
export function shownStatusSql(now: string, toSql = (status: ShownStatus): string => `'${status}'`): string {
  const values = STATUSES.map(toSql).join(', ')
  return `case when s.status = ${statusCode('up')} and s.expected_at <= ${now} then ${toSql('late')} else (array[${values}])[s.status + 1] end`
}

/** What a list of checks can be narrowed to. */
export interface CheckRowsFilter {
  /** One of these statuses, at this time. */
  readonly status?: { readonly statuses: readonly ShownStatus[]; readonly now: Instant }
  /** One of these last completions. */
  readonly outcome?: readonly Completion[]
  readonly slug?: string
  /** Part of the name or of the slug, in any case. */
  readonly q?: string
  /** All of these tags. */
  readonly tag?: readonly string[]
  /** All of these labels, of which two can have one name. */
  readonly label?: readonly Labels[]
  readonly managedBy?: Manager
}

/**
 * The conditions over the check `c` and its state `s`, each with an `and` before it, and their parameters, counted from
 * `$first`.
 */
export function narrow(filter: CheckRowsFilter, first: number): { sql: string; values: unknown[] } {
  const { status, outcome, slug, q, tag, label, managedBy } = filter
  const conditions: string[] = []
  const values: unknown[] = []
  const given = (value: unknown) => `$${first + values.push(value) - 1}`
  if (status !== undefined) {
    const shown = shownStatusSql(`${given(timestamp(status.now))}::timestamptz`)
    conditions.push(`${shown} = any(${given(status.statuses)}::text[])`)
  }
  if (outcome !== undefined) conditions.push(`s.last_outcome = any(${given(outcome.map(pingTypeCode))}::int2[])`)
  if (slug !== undefined) conditions.push(`c.slug = ${given(slug)}::text`)
  if (q !== undefined) {
    const part = given(`%${q.replace(/[\\%_]/g, '\\$&')}%`)
    conditions.push(`(c.name ilike ${part}::text or c.slug ilike ${part}::text)`)
  }
  if (tag !== undefined) conditions.push(`c.tags @> ${given(tag)}::text[]`)
  if (label !== undefined)
    conditions.push(`c.labels @> all(${given(label.map((one) => JSON.stringify(one)))}::jsonb[])`)
  if (managedBy !== undefined) conditions.push(`c.managed_by = ${given(managedBy)}::text`)
  return { sql: conditions.map((condition) => ` and ${condition}`).join(''), values }
}

// check_states ---------------------------------------------------------------------------------------------------------------

/** The schedule and its limits as people give them: a period, or a cron expression with its zone. */
export interface StoredSpec {
  readonly periodSeconds: number | null
  readonly schedule: string | null
  readonly timeZone: string | null
  /** Who reads the schedule, as who manages the check decides. Null for a period. */
  readonly dialect: Dialect | null
  readonly graceSeconds: number
  readonly maxRuntimeSeconds: number | null
  /** Of a ping, or of the container of a Job: then the job is done, with a warning. Sorted, each once. */
  readonly warnExitCodes: readonly number[]
  readonly failuresBeforeDown: number
  readonly missesBeforeDown: number
  readonly remindEverySeconds: number | null
  readonly remindOnEachRun: boolean
  /** The check follows a source in this area (../jobs/seen-areas.ts), whose Jobs report its runs. Null: pings report them. */
  readonly jobArea: string | null
  /** Whether a completion resumes the check when it is paused. False of a declared check. */
  readonly resumeOnPing: boolean
}

/** What the state machine reads of it. `schedule`: its own, which was read. */
export function withSchedule(stored: StoredSpec, schedule: Schedule): CheckSpec {
  const { graceSeconds, maxRuntimeSeconds, remindEverySeconds, jobArea, resumeOnPing } = stored
  return {
    schedule,
    graceMs: graceSeconds * 1_000,
    maxRuntimeMs: maxRuntimeSeconds === null ? null : maxRuntimeSeconds * 1_000,
    awaits: jobArea === null ? 'completion' : 'start',
    resumesOnPing: resumeOnPing && jobArea === null,
    failuresBeforeDown: stored.failuresBeforeDown,
    missesBeforeDown: stored.missesBeforeDown,
    remindEveryMs: remindEverySeconds === null ? null : remindEverySeconds * 1_000,
    remindsOnEachRun: stored.remindOnEachRun,
  }
}

/** As people give it: who manages the check decides the dialect. */
export type GivenSpec = Omit<StoredSpec, 'dialect'>

/** From these follow the deadlines. */
export const TIMED = {
  periodSeconds: { type: 'int4' },
  schedule: { type: 'text' },
  timeZone: { type: 'text' },
  dialect: { type: 'text' },
  graceSeconds: { type: 'int4' },
  maxRuntimeSeconds: { type: 'int4' },
  jobArea: { type: 'text' },
} as const
type Timed = Pick<StoredSpec, keyof typeof TIMED>

export const SPEC = {
  ...TIMED,
  warnExitCodes: { type: 'jsonb', encode: orNull, decode: (codes) => (codes as readonly number[] | null) ?? [] },
  failuresBeforeDown: { type: 'int2', ...nullFor(1) },
  missesBeforeDown: { type: 'int2', ...nullFor(1) },
  remindEverySeconds: { type: 'int4' },
  remindOnEachRun: { type: 'bool', ...nullFor<boolean>(false) },
  resumeOnPing: { type: 'bool' },
} as const satisfies Columns<StoredSpec>

/**
 * The spec of a row of check_states as one number, in SQL. It has 48 bits, which a number here holds: another spec may
 * have it. Not a column: PostgreSQL would make a generated one anew with each ping, for longer than all else of its
 * update.
 */
export const SPEC_HASH = `(hash_record_extended(row(${namesOf(SPEC)}), 0) & ${2 ** 48 - 1})`

/** These survive in the tombstone of a removed check. */
export const KEPT_STATE = {
  lastPingAt: { type: 'timestamptz' },
  lastOutcome: {
    type: 'int2',
    encode: (outcome) => (outcome === null ? null : pingTypeCode(outcome)),
    decode: (code) => (PING_TYPES[code as number] as Completion | undefined) ?? null,
  },
  lastSuccessAt: { type: 'timestamptz' },
  lastDurationMs: { type: 'int4' },
  lastStartAt: { type: 'timestamptz' },
  pingsTotal: { type: 'int8' },
  incidentSince: { type: 'timestamptz' },
  escalation: { type: 'jsonb' },
} as const satisfies Columns<KeptState>

export const STATE = {
  status: { type: 'int2', encode: statusCode, decode: (code) => STATUSES[code as number]! },
  since: { type: 'timestamptz' },
  reason: { type: 'text' },
  ...KEPT_STATE,
  expectedAt: { type: 'timestamptz' },
  dueAt: { type: 'timestamptz' },
  runs: { type: 'jsonb', encode: orNull, decode: (runs) => (runs as readonly Run[] | null) ?? [] },
  changes: { type: 'jsonb', encode: orNull, decode: (changes) => (changes as readonly Instant[] | null) ?? [] },
  notified: {
    type: 'int2',
    encode: (status) => (status === null ? null : statusCode(status)),
    decode: (code) => STATUSES[code as number] ?? null,
  },
  quietAt: { type: 'timestamptz' },
  hold: { type: 'jsonb' },
  downNotifiedAt: { type: 'timestamptz' },
  reminders: { type: 'int4', ...nullFor(0) },
  warnedAt: { type: 'timestamptz' },
  consecutiveFailures: { type: 'int4', ...nullFor(0) },
  consecutiveMisses: { type: 'int4', ...nullFor(0) },
  pause: { type: 'jsonb' },
  acknowledged: { type: 'jsonb' },
  repeats: { type: 'jsonb', encode: orNull, decode: (repeats) => (repeats as readonly Instant[] | null) ?? [] },
} as const satisfies Columns<CheckState>

export interface CheckTiming {
  /** The time of the newest history entry, to the microsecond: the next is later. */
  readonly stampedAt: Instant
  /** The time of the next evaluation. */
  readonly wakeAt: Instant | null
}

export const TIMING = {
  stampedAt: { type: 'timestamptz' },
  wakeAt: { type: 'timestamptz' },
} as const satisfies Columns<CheckTiming>

/** All of `check_states` but the key. */
export const STORED_STATE = { ...SPEC, ...STATE, ...TIMING }
export interface StoredState extends StoredSpec, CheckState, CheckTiming {}

// Rows -----------------------------------------------------------------------------------------------------------------------

/** In a row that has the columns of SPEC, or of STATE, from `first` on. */
export const toStoredSpec = (row: readonly unknown[], first: number) => read<StoredSpec>(SPEC, row, first)
export const toState = (row: readonly unknown[], first: number) => read<CheckState>(STATE, row, first)

/** Whether the columns have the same values. */
export const isSameTexts = (one: CheckTexts, other: CheckTexts) => isSame<CheckTexts>(TEXTS, one, other)
export const isSameOrigin = (one: CheckOrigin, other: CheckOrigin) => isSame<CheckOrigin>(ORIGIN, one, other)
export const isSameSpec = (one: StoredSpec, other: StoredSpec) => isSame<StoredSpec>(SPEC, one, other)
/** Whether they differ in nothing but the area in which the check follows its source: then the check expects the same. */
export const isOnlyElsewhere = (one: StoredSpec, other: StoredSpec) =>
  one.jobArea !== null && other.jobArea !== null && isSameSpec({ ...one, jobArea: other.jobArea }, other)

/** Whether each deadline is the same under both. */
export const isSameTiming = (one: StoredSpec, other: StoredSpec) => isSame<Timed>(TIMED, one, other)

const { jobArea: _jobArea, dialect: _dialect, ...GIVEN_SPEC } = SPEC

/** What users configure of a check, here and in its resource. */
const CONFIGURATION = {
  projectId: IDENTITY.projectId,
  slug: IDENTITY.slug,
  managedBy: OWNER.managedBy,
  ...TEXTS,
  ...GIVEN_SPEC,
} as const
type Configured = Pick<CheckIdentity, 'projectId' | 'slug'> & Pick<CheckOwner, 'managedBy'> & CheckTexts

/** The names of the configured fields that differ, as the API calls them. */
export function changedConfiguration(
  before: Configured & { readonly spec: StoredSpec },
  after: Configured & { readonly spec: StoredSpec },
): string[] {
  const flat = ({ spec, ...check }: Configured & { readonly spec: StoredSpec }) => ({ ...check, ...spec })
  return changedFields(flat(before), flat(after), fieldsOf<Configured & Omit<GivenSpec, 'jobArea'>>(CONFIGURATION))
}

/** The texts, without anything else that `source` has. */
export const textsOf = (source: CheckTexts): CheckTexts => pick<CheckTexts>(TEXTS, source)
