/** The endpoints of checks (interface, section 4.1; design, section 3.2). */

import { createCheck as create } from '../../checks/create-check.ts'
import { type CheckRecord, getCheck as get, listChecks as list, textsOf } from '../../checks/find-checks.ts'
import { pauseCheck as pause, resumeCheck as resume } from '../../checks/pause-resume.ts'
import { removeCheck as remove } from '../../checks/remove-check.ts'
import { type CheckUpdate as Update, updateCheck as update } from '../../checks/update-check.ts'
import { type Caller, includesScope } from '../../domain/access.ts'
import { type Instant, isOpen, shownStatus } from '../../domain/check.ts'
import { LIMITS } from '../../domain/limits.ts'
import { deadlineOf } from '../../domain/transition.ts'
import { Check, CheckList, CheckListQuery, CheckParams, CheckUpdate, NewCheck } from './checks.schema.ts'
import { given, presentNext, toIso, toIsoOrNull, toPageRequest } from './present.ts'
import { endpoint } from './route.ts'

export const listChecks = endpoint({
  id: 'listChecks',
  summary: 'List the checks of a project, oldest first',
  query: CheckListQuery,
  status: 200,
  response: CheckList,
  errors: ['not_found'],
  async handle({ context, caller, query }) {
    const { project_id, limit, cursor, ...filter } = query
    const page = await list(context, caller, project_id, given(filter), toPageRequest({ limit, cursor }))
    const now = context.clock.now()
    return { checks: page.rows.map((check) => presentShared(check, now)), ...presentNext(page) }
  },
})

export const createCheck = endpoint({
  id: 'createCheck',
  summary: 'Create a check',
  body: NewCheck,
  status: 201,
  response: Check,
  errors: ['not_found', 'conflict'],
  async handle({ context, caller, body }) {
    const { spec, rest } = splitSpec(body)
    const { project_id: projectId, name, ...texts } = rest
    const fields = { projectId, name, ...given(texts), spec: toSpec(body.grace_seconds, spec) }
    const check = await create(context, caller, fields)
    return presentCheck(check, caller, context.clock.now())
  },
})

export const getCheck = endpoint({
  id: 'getCheck',
  summary: 'Get a check',
  params: CheckParams,
  status: 200,
  response: Check,
  handle: async ({ context, caller, params }) =>
    presentCheck(await get(context, caller, params.id), caller, context.clock.now()),
})

export const updateCheck = endpoint({
  id: 'updateCheck',
  summary: 'Change a check; omitted fields keep their values',
  params: CheckParams,
  body: CheckUpdate,
  status: 200,
  response: Check,
  errors: ['conflict'],
  handle: async ({ context, caller, params, body }) =>
    presentCheck(await update(context, caller, params.id, toUpdate(body)), caller, context.clock.now()),
})

export const removeCheck = endpoint({
  id: 'removeCheck',
  summary: 'Remove a check and its history; its ping address is unknown from then on',
  params: CheckParams,
  status: 204,
  response: null,
  errors: ['conflict'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

export const pauseCheck = endpoint({
  id: 'pauseCheck',
  summary: 'Pause a check: pings are kept, no alerts are sent',
  params: CheckParams,
  status: 200,
  response: Check,
  errors: ['conflict'],
  handle: async ({ context, caller, params }) =>
    presentCheck(await pause(context, caller, params.id), caller, context.clock.now()),
})

export const resumeCheck = endpoint({
  id: 'resumeCheck',
  summary: 'Resume a paused check; its next completion is awaited from now on',
  params: CheckParams,
  status: 200,
  response: Check,
  errors: ['conflict'],
  handle: async ({ context, caller, params }) =>
    presentCheck(await resume(context, caller, params.id), caller, context.clock.now()),
})

type CheckUpdateBody = (typeof CheckUpdate)['_output']

/** The fields of the spec under the names of the verbs, and the other fields. */
function splitSpec<Body extends CheckUpdateBody>(body: Body) {
  const { period_seconds, schedule, time_zone, grace_seconds, max_runtime_seconds, ...rest } = body
  const spec = {
    periodSeconds: period_seconds,
    schedule,
    timeZone: time_zone,
    graceSeconds: grace_seconds,
    maxRuntimeSeconds: max_runtime_seconds,
  } satisfies Record<keyof CheckRecord['spec'], unknown>
  return { spec, rest }
}

/** A contradiction is passed on: the verb rejects it. */
function toSpec(graceSeconds: number, spec: ReturnType<typeof splitSpec>['spec']): CheckRecord['spec'] {
  const { periodSeconds, schedule = null, timeZone = null, maxRuntimeSeconds = null } = spec
  const standard = schedule === null ? LIMITS.periodSeconds.default : null
  return { periodSeconds: periodSeconds ?? standard, schedule, timeZone, graceSeconds, maxRuntimeSeconds }
}

function toUpdate(body: CheckUpdateBody): Update {
  const { spec, rest } = splitSpec(body)
  return given({ ...rest, ...spec })
}

function presentCheck(check: CheckRecord, caller: Caller, now: Instant) {
  const { state, spec } = check
  return {
    ...presentShared(check, now),
    ...textsOf(check),
    // It is the right to ping, which the scope read does not include.
    public_id: includesScope(caller.scope, 'write') ? check.publicId : null,
    project_id: check.projectId,
    max_runtime_seconds: spec.maxRuntimeSeconds,
    last_start_at: toIsoOrNull(state.lastStartAt),
    created_at: toIso(check.createdAt),
    expected_at: toIsoOrNull(state.expectedAt),
    due_at: toIsoOrNull(deadlineOf(state)),
    managed_by: check.managedBy,
    kubernetes: check.kubernetes,
  }
}

function presentShared({ id, name, slug, spec, state }: CheckRecord, now: Instant) {
  return {
    id,
    name,
    slug,
    status: shownStatus(state, now),
    period_seconds: spec.periodSeconds,
    grace_seconds: spec.graceSeconds,
    schedule: spec.schedule,
    time_zone: spec.timeZone,
    last_ping_at: toIsoOrNull(state.lastPingAt),
    running: state.runs.filter((run) => isOpen(run, now)).length,
  }
}
