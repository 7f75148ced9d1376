/** The endpoints of checks (interface, section 4.1; design, section 3.2). */

import type { z } from 'zod'
import { acknowledgeCheck as acknowledge, endAcknowledgement } from '../../checks/acknowledge.ts'
import { createCheck as create, type NewCheck as New } from '../../checks/create-check.ts'
import { type CheckRecord, getCheck as get, listChecks as list, type PlacedCheck } from '../../checks/find-checks.ts'
import { type PauseInput, pauseCheck as pause, resumeCheck as resume } from '../../checks/pause-resume.ts'
import { NO_SPEC, splitSpec } from '../../checks/read-spec.ts'
import { removeCheck as remove } from '../../checks/remove-check.ts'
import { type CheckUpdate as Update, updateCheck as update } from '../../checks/update-check.ts'
import { type Caller, includesScope } from '../../domain/access.ts'
import { acknowledgementAt, isFlapping, isRunning, shownStatus } from '../../domain/check.ts'
import { type CheckPlace, type CheckSort, decodePlace, encodePlace } from '../../domain/check-order.ts'
import { sortLabels } from '../../domain/labels.ts'
import { type RunOutcome, SOURCE_KIND } from '../../domain/last-run.ts'
import { LIMITS } from '../../domain/limits.ts'
import { deadlineOf } from '../../domain/transition.ts'
import {
  AcknowledgeBody,
  Check,
  CheckList,
  CheckListQuery,
  CheckParams,
  CheckUpdate,
  ListedCheck,
  NewCheck,
  PauseBody,
} from './checks.schema.ts'
import { invalidFields, parsePart } from './faults.ts'
import { writePage } from './list-page.ts'
import { inCamelCase, present } from './present.ts'
import { type Api, endpoint } from './route.ts'

export const listChecks = endpoint({
  summary: 'List the checks of a project, oldest first unless `sort` says otherwise',
  query: CheckListQuery,
  response: CheckList,
  errors: ['not_found'],
  handle(call) {
    const { context, caller, query } = call
    const { projectId, limit, cursor, sort, ...filter } = inCamelCase(query)
    const pieces = list(context, caller, projectId, filter, { limit, sort, after: readPlace(cursor, sort) })
    const show = (check: PlacedCheck) => present(ListedCheck, toShown(check, call))
    return writePage('checks', pieces, show, { of: ({ place }) => place, encode: encodePlace })
  },
})

export const createCheck = endpoint({
  summary: 'Create a check',
  body: NewCheck,
  status: 201,
  response: Check,
  errors: ['not_found', 'slug_taken'],
  handle: async (call) => toShown(await create(call.context, call.caller, toNewCheck(call.body)), call),
})

export const getCheck = endpoint({
  summary: 'Get a check',
  params: CheckParams,
  response: Check,
  handle: async (call) => toShown(await get(call.context, call.caller, call.params.id), call),
})

export const updateCheck = endpoint({
  summary: 'Change a check; omitted fields keep their values',
  params: CheckParams,
  body: CheckUpdate,
  response: Check,
  errors: ['slug_taken', 'managed_by_kubernetes'],
  handle: async (call) =>
    toShown(await update(call.context, call.caller, call.params.id, inCamelCase(call.body)), call),
})

export const removeCheck = endpoint({
  summary: 'Remove a check and its history; its ping address is unknown from then on',
  params: CheckParams,
  errors: ['managed_by_kubernetes'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

export const pauseCheck = endpoint({
  summary: 'Pause a check: pings are kept, no alerts are sent. Of a paused check the pause is replaced',
  params: CheckParams,
  body: PauseBody,
  isBodyOptional: true,
  response: Check,
  errors: ['managed_by_kubernetes', 'conflict'],
  handle: async (call) => {
    const paused = await pause(call.context, call.caller, call.params.id, inCamelCase(call.body))
    return toShown(paused, call)
  },
})

export const resumeCheck = endpoint({
  summary: 'Resume a paused check; its next completion is awaited from now on',
  params: CheckParams,
  response: Check,
  errors: ['managed_by_kubernetes', 'conflict'],
  handle: async (call) => toShown(await resume(call.context, call.caller, call.params.id), call),
})

export const acknowledgeCheck = endpoint({
  summary:
    'Acknowledge that a check is down: no reminder and no second channel follows. A second call replaces end and comment',
  params: CheckParams,
  body: AcknowledgeBody,
  isBodyOptional: true,
  response: Check,
  errors: ['not_down', 'conflict'],
  handle: async (call) => {
    const acknowledged = await acknowledge(call.context, call.caller, call.params.id, inCamelCase(call.body))
    return toShown(acknowledged, call)
  },
})

export const unacknowledgeCheck = endpoint({
  summary: 'End an acknowledgement',
  params: CheckParams,
  response: Check,
  errors: ['not_down', 'conflict'],
  handle: async (call) => toShown(await endAcknowledgement(call.context, call.caller, call.params.id), call),
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

/** What the verbs take of a body that is not checked yet. They throw as `parsePart` does. */
export const readNewCheck = (body: unknown): New => toNewCheck(parsePart('body', NewCheck, body))
export const readCheckUpdate = (body: unknown): Update => inCamelCase(parsePart('body', CheckUpdate, body))
export const readPause = (body: unknown): PauseInput => inCamelCase(parsePart('body', PauseBody, body))

/** A contradiction is passed on: the verb rejects it. */
function toNewCheck(body: z.output<typeof NewCheck>): New {
  const { given, others } = splitSpec(inCamelCase(body))
  const periodSeconds = given.schedule === undefined ? LIMITS.periodSeconds.default : null
  return { ...others, spec: { ...NO_SPEC, periodSeconds, ...given } }
}

function toShown(check: CheckRecord, { context, caller, pingUrl }: Api & { readonly caller: Caller }) {
  const { spec, state, publicId, kubernetes, cronJob } = check
  const now = context.clock.now()
  // They are the right to ping, which the scope read does not include.
  const mayPing = includesScope(caller.scope, 'write')
  return {
    ...check,
    ...spec,
    ...state,
    status: shownStatus(state, now),
    statusSince: state.since,
    statusReason: state.reason,
    statusDetail: check.statusDetail ?? null,
    dueAt: deadlineOf(state),
    running: state.runs.filter((run) => isRunning(run, now)).length,
    labels: sortLabels(check.labels),
    publicId: mayPing ? publicId : null,
    pingUrl: mayPing ? `${pingUrl()}/ping/${publicId}` : null,
    flapping: isFlapping(state),
    acknowledged: acknowledgementAt(state, now),
    pause: state.pause === null ? null : { ...state.pause, at: state.since },
    kubernetes:
      kubernetes === null ? null : { ...kubernetes, source: cronJob === undefined ? null : toSource(cronJob) },
  }
}

function toSource({ name, lastRun }: NonNullable<CheckRecord['cronJob']>) {
  if (lastRun === null) return { kind: SOURCE_KIND, name, lastRun }
  const outcome = lastRun.outcome.toLowerCase() as Lowercase<RunOutcome>
  return { kind: SOURCE_KIND, name, lastRun: { ...lastRun, name: lastRun.job, outcome } }
}
