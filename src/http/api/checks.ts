/** The endpoints of checks (interface, section 4.1; design, section 3.2). */

import type { z } from 'zod'
import { createCheck as create, type NewCheck as New } from '../../checks/create-check.ts'
import {
  type CheckRecord,
  getCheck as get,
  listChecks as list,
  type PlacedCheck,
  textsOf,
} from '../../checks/find-checks.ts'
import { pauseCheck as pause, resumeCheck as resume } from '../../checks/pause-resume.ts'
import { removeCheck as remove } from '../../checks/remove-check.ts'
import { type CheckUpdate as Update, updateCheck as update } from '../../checks/update-check.ts'
import { type Caller, includesScope } from '../../domain/access.ts'
import { type Instant, isFlapping, isRunning, shownStatus } from '../../domain/check.ts'
import { type CheckPlace, type CheckSort, decodePlace, encodePlace } from '../../domain/check-order.ts'
import { sortLabels } from '../../domain/labels.ts'
import { type LastRun, type RunOutcome, SOURCE_KIND } from '../../domain/last-run.ts'
import { LIMITS } from '../../domain/limits.ts'
import { deadlineOf } from '../../domain/transition.ts'
import { Check, CheckList, CheckListQuery, CheckParams, CheckUpdate, NewCheck } from './checks.schema.ts'
import { invalidFields, parsePart } from './faults.ts'
import { given, readPlaced, toIso, toIsoOrNull } from './present.ts'
import { type Api, endpoint } from './route.ts'

export const listChecks = endpoint({
  id: 'listChecks',
  summary: 'List the checks of a project, oldest first unless `sort` says otherwise',
  query: CheckListQuery,
  status: 200,
  response: CheckList,
  errors: ['not_found'],
  async handle({ context, caller, query, pingUrl }) {
    const { project_id, limit, cursor, sort, managed_by: managedBy, ...others } = query
    const filter = given({ ...others, managedBy })
    const pieces = list(context, caller, project_id, filter, { limit, sort, after: readPlace(cursor, sort) })
    const present = (check: PlacedCheck) => presentListed(check, caller, { now: context.clock.now(), pingUrl })
    const places = { of: ({ place }: PlacedCheck) => place, encode: encodePlace }
    const { entries, next_cursor } = await readPlaced('checks', pieces, present, places)
    return { checks: entries, next_cursor }
  },
})

export const createCheck = endpoint({
  id: 'createCheck',
  summary: 'Create a check',
  body: NewCheck,
  status: 201,
  response: Check,
  errors: ['not_found', 'slug_taken'],
  async handle({ context, caller, body, pingUrl }) {
    const check = await create(context, caller, toNewCheck(body))
    return presentCheck(check, caller, { now: context.clock.now(), pingUrl })
  },
})

export const getCheck = endpoint({
  id: 'getCheck',
  summary: 'Get a check',
  params: CheckParams,
  status: 200,
  response: Check,
  handle: async ({ context, caller, params, pingUrl }) =>
    presentCheck(await get(context, caller, params.id), caller, { now: context.clock.now(), pingUrl }),
})

export const updateCheck = endpoint({
  id: 'updateCheck',
  summary: 'Change a check; omitted fields keep their values',
  params: CheckParams,
  body: CheckUpdate,
  status: 200,
  response: Check,
  errors: ['slug_taken', 'managed_by_kubernetes'],
  handle: async ({ context, caller, params, body, pingUrl }) =>
    presentCheck(await update(context, caller, params.id, toUpdate(body)), caller, {
      now: context.clock.now(),
      pingUrl,
    }),
})

export const removeCheck = endpoint({
  id: 'removeCheck',
  summary: 'Remove a check and its history; its ping address is unknown from then on',
  params: CheckParams,
  status: 204,
  response: null,
  errors: ['managed_by_kubernetes'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

export const pauseCheck = endpoint({
  id: 'pauseCheck',
  summary: 'Pause a check: pings are kept, no alerts are sent',
  params: CheckParams,
  status: 200,
  response: Check,
  errors: ['managed_by_kubernetes', 'conflict'],
  handle: async ({ context, caller, params, pingUrl }) =>
    presentCheck(await pause(context, caller, params.id), caller, { now: context.clock.now(), pingUrl }),
})

export const resumeCheck = endpoint({
  id: 'resumeCheck',
  summary: 'Resume a paused check; its next completion is awaited from now on',
  params: CheckParams,
  status: 200,
  response: Check,
  errors: ['managed_by_kubernetes', 'conflict'],
  handle: async ({ context, caller, params, pingUrl }) =>
    presentCheck(await resume(context, caller, params.id), caller, { now: context.clock.now(), pingUrl }),
})

/** The cursor of another order says so: the order is a parameter of its own. */
function readPlace(cursor: string | undefined, sort: CheckSort): CheckPlace | null {
  if (cursor === undefined) return null
  const place = decodePlace(cursor)
  if (place?.sort === sort) return place
  const earlier = 'must be the next_cursor of an earlier response'
  const message = place === null ? earlier : `${earlier} with the same sort, not with sort=${place.sort}`
  throw invalidFields('query', [{ path: 'cursor', message }])
}

type CheckUpdateBody = z.output<typeof CheckUpdate>

/** The fields of the spec under the names of the verbs, and the other fields. */
function splitSpec<Body extends CheckUpdateBody>(body: Body) {
  const { period_seconds, schedule, time_zone, grace_seconds, max_runtime_seconds, resume_on_ping, ...rest } = body
  const spec = {
    periodSeconds: period_seconds,
    schedule,
    timeZone: time_zone,
    graceSeconds: grace_seconds,
    maxRuntimeSeconds: max_runtime_seconds,
    resumeOnPing: resume_on_ping,
  } satisfies Record<Exclude<keyof New['spec'], 'jobArea'>, unknown>
  return { spec, rest }
}

/** What the verbs take of a body that is not checked yet. They throw as `parsePart` does. */
export const readNewCheck = (body: unknown): New => toNewCheck(parsePart('body', NewCheck, body))
export const readCheckUpdate = (body: unknown): Update => toUpdate(parsePart('body', CheckUpdate, body))

function toNewCheck(body: z.output<typeof NewCheck>): New {
  const { spec, rest } = splitSpec(body)
  const { project_id: projectId, name, armed, ...texts } = rest
  return { projectId, name, armed, ...given(texts), spec: toSpec(body.grace_seconds, spec) }
}

/** A contradiction is passed on: the verb rejects it. */
function toSpec(graceSeconds: number, spec: ReturnType<typeof splitSpec>['spec']): New['spec'] {
  const { periodSeconds, schedule = null, timeZone = null, maxRuntimeSeconds = null, resumeOnPing = false } = spec
  const standard = schedule === null ? LIMITS.periodSeconds.default : null
  const limits = { graceSeconds, maxRuntimeSeconds, jobArea: null, resumeOnPing }
  return { periodSeconds: periodSeconds ?? standard, schedule, timeZone, ...limits }
}

function toUpdate(body: CheckUpdateBody): Update {
  const { spec, rest } = splitSpec(body)
  return given({ ...rest, ...spec })
}

type Environment = Pick<Api, 'pingUrl'> & { readonly now: Instant }

function presentCheck(check: CheckRecord, caller: Caller, environment: Environment) {
  const { cronJob } = check
  const lastRun = cronJob?.lastRun ?? null
  return presentAs(check, caller, environment, { last_run: lastRun === null ? null : presentRun(lastRun) })
}

const presentListed = (check: CheckRecord, caller: Caller, environment: Environment) =>
  presentAs(check, caller, environment, {})

/** `ofSource`: what is shown of the source besides its names. */
function presentAs<OfSource>(check: CheckRecord, caller: Caller, { now, pingUrl }: Environment, ofSource: OfSource) {
  const { id, slug, spec, state, statusDetail, managedBy, kubernetes, cronJob } = check
  // They are the right to ping, which the scope read does not include.
  const mayPing = includesScope(caller.scope, 'write')
  const source = cronJob === undefined ? null : { kind: SOURCE_KIND, name: cronJob.name, ...ofSource }
  return {
    id,
    ...textsOf(check),
    slug,
    status: shownStatus(state, now),
    status_since: toIso(state.since),
    status_reason: state.reason,
    status_detail: statusDetail ?? null,
    period_seconds: spec.periodSeconds,
    grace_seconds: spec.graceSeconds,
    schedule: spec.schedule,
    time_zone: spec.timeZone,
    last_ping_at: toIsoOrNull(state.lastPingAt),
    expected_at: toIsoOrNull(state.expectedAt),
    due_at: toIsoOrNull(deadlineOf(state)),
    running: state.runs.filter((run) => isRunning(run, now)).length,
    managed_by: managedBy,
    labels: sortLabels(check.labels),
    public_id: mayPing ? check.publicId : null,
    ping_url: mayPing ? `${pingUrl()}/ping/${check.publicId}` : null,
    project_id: check.projectId,
    max_runtime_seconds: spec.maxRuntimeSeconds,
    resume_on_ping: spec.resumeOnPing,
    flapping: isFlapping(state),
    last_start_at: toIsoOrNull(state.lastStartAt),
    last_duration_ms: state.lastDurationMs,
    pings_total: state.pingsTotal,
    created_at: toIso(check.createdAt),
    updated_at: toIso(check.updatedAt),
    kubernetes: kubernetes === null ? null : { ...kubernetes, source },
  }
}

const presentRun = ({ job, startTime, completionTime, outcome, exitCode, reason, message }: LastRun) => ({
  name: job,
  start_time: startTime,
  completion_time: completionTime,
  outcome: outcome.toLowerCase() as Lowercase<RunOutcome>,
  exit_code: exitCode,
  reason,
  message,
})
