/** The calls of healthchecks' API that read and change checks, on the verbs of checks/. */

import { randomUUID } from 'node:crypto'
import { createCheck as create, createUnlessFound, type NewCheck } from '../../checks/create-check.ts'
import * as found from '../../checks/find-checks.ts'
import { pauseCheck as pause, resumeCheck as resume } from '../../checks/pause-resume.ts'
import { NO_SPEC } from '../../checks/read-spec.ts'
import { removeCheck } from '../../checks/remove-check.ts'
import { type CheckUpdate, updateCheck as update } from '../../checks/update-check.ts'
import { isTag } from '../../domain/badge.ts'
import { AppError } from '../../domain/errors.ts'
import { LIMITS } from '../../domain/limits.ts'
import { isSlug } from '../../domain/slug.ts'
import { given } from '../api/present.ts'
import { type Call, findChannels, findView, ok, type Reply } from './call.ts'
import { slugOfName } from './name-slug.ts'
import { presentCheck } from './present.ts'
import { writeList } from './send-list.ts'
import { jsonFault, readSpec, type Spec } from './spec.ts'
import { uniqueKeyOf } from './unique-key.ts'

/** Finds by uuid or by unique key. Throws AppError `not_found`, also for a check of another project. */
export async function findCheck({ context, caller, params }: Call): Promise<found.StoredCheck> {
  const { uuid, unique_key: uniqueKey = '' } = params
  const wanted = uniqueKey.toLowerCase()
  return uuid === undefined
    ? found.searchCheck(context, caller, caller.projectId, (publicId) => uniqueKeyOf(publicId) === wanted)
    : found.getCheck(context, caller, uuid, 'public_id')
}

export async function listChecks(call: Call): Promise<Reply> {
  const { context, caller, query } = call
  const view = await findView(call)
  const slug = query.get('slug') || undefined
  const tags = query.getAll('tag')
  const filter = given({ slug, tag: tags.length === 0 ? undefined : tags })
  // Any other text names no check. PostgreSQL cannot read some of these texts.
  const canMatch = (slug === undefined || isSlug(slug)) && tags.every(isTag)
  if (!canMatch) return ok({ checks: [] })
  const pieces = found.listAllChecks(context, caller, caller.projectId, filter)
  return { list: writeList('checks', pieces, (check) => presentCheck(check, view)) }
}

export async function getCheck(call: Call): Promise<Reply> {
  const check = await findCheck(call)
  return ok(presentCheck(check, await findView(call)))
}

/** Healthchecks' defaults are ours, but for the pause: it ends with a ping. */
export async function createCheck(call: Call): Promise<Reply> {
  const { context, caller } = call
  const spec = readSpec(call.body)
  const publicId = randomUUID()
  const { slug, schedule = null, timeout = LIMITS.periodSeconds.default, grace = LIMITS.graceSeconds.default } = spec
  const input: NewCheck = {
    projectId: caller.projectId,
    publicId,
    name: spec.name || slug || `check-${publicId.slice(0, 8)}`,
    ...(slug ? { slug } : {}),
    ...(slug === '' ? { slugLeftEmpty: true } : {}),
    ...(spec.name && call.version !== 3 ? { slugLike: slugOfName(spec.name) } : {}),
    ...textsOf(spec),
    ...given({ channels: await readChannels(call, spec) }),
    spec: {
      ...NO_SPEC,
      periodSeconds: schedule === null ? timeout : null,
      schedule,
      timeZone: schedule === null ? null : (spec.tz ?? null),
      graceSeconds: grace,
      resumeOnPing: !(spec.manual_resume ?? false),
    },
  }
  const match = toMatch(spec)
  const result = await inWordsOfHealthchecks(async () =>
    match === null
      ? { made: await create(context, caller, input) }
      : await createUnlessFound(context, caller, input, match),
  )
  if ('foundId' in result) return applyUpdate(call, await found.getCheck(context, caller, result.foundId), spec)
  return { status: 201, json: presentCheck(result.made, await findView(call)) }
}

/**
 * Null: no check is searched, because `unique` is missing or names a field that the request does not give. Of an empty
 * name the search goes by the slug, which names such a check.
 */
function toMatch({ unique = [], name: wantedName, slug, tags, timeout, grace }: Spec) {
  const name = wantedName === '' ? slug || undefined : wantedName
  const fields = { name, slug, tags, timeout, grace }
  if (unique.length === 0 || unique.some((field) => fields[field] === undefined)) return null
  const wanted = new Set(unique)
  return given({
    name: wanted.has('name') ? name : undefined,
    slug: wanted.has('slug') ? slug : undefined,
    tags: wanted.has('tags') ? tags : undefined,
    periodSeconds: wanted.has('timeout') ? timeout : undefined,
    graceSeconds: wanted.has('grace') ? grace : undefined,
  })
}

export async function updateCheck(call: Call): Promise<Reply> {
  const check = await findCheck(call)
  return applyUpdate(call, check, readSpec(call.body))
}

async function applyUpdate(call: Call, check: found.StoredCheck, spec: Spec): Promise<Reply> {
  const { context, caller } = call
  const slug = spec.slug || undefined
  const changes: CheckUpdate = {
    ...(spec.name === undefined ? {} : { name: spec.name || (slug ?? check.slug) }),
    ...textsOf(spec),
    ...toSchedule(spec, check),
    ...(spec.slug === '' ? { slugLeftEmpty: true } : {}),
    ...given({
      slug,
      channels: await readChannels(call, spec),
      graceSeconds: spec.grace,
      resumeOnPing: spec.manual_resume === undefined ? undefined : !spec.manual_resume,
    }),
  }
  const updated = await inWordsOfHealthchecks(async () => {
    const derived = derivedSlug(call, check, spec)
    if (derived === null) return update(context, caller, check.id, changes)
    try {
      return await update(context, caller, check.id, { ...changes, slug: derived })
    } catch (error) {
      // Slugs are unique here: the check keeps its own.
      if (!isSlugTaken(error)) throw error
      return update(context, caller, check.id, changes)
    }
  })
  return ok(presentCheck(updated, await findView(call)))
}

/** In versions 1 and 2 a new name makes a new slug. Null: the name says nothing of the slug. */
function derivedSlug({ version }: Call, check: found.StoredCheck, { name, slug }: Spec): string | null {
  if (version === 3 || slug || !name || name === check.name) return null
  return slugOfName(name)
}

const isSlugTaken = (error: unknown) => error instanceof AppError && error.code === 'slug_taken'

function textsOf({ desc, tags }: Spec) {
  return given({ description: desc, tags: tags === undefined ? undefined : [...tags] })
}

/** A schedule comes before a period; a zone alone concerns checks that have a schedule. */
function toSchedule({ schedule, timeout, tz }: Spec, check: found.StoredCheck): CheckUpdate {
  if (schedule !== undefined) return given({ schedule, timeZone: tz })
  if (timeout !== undefined) return { periodSeconds: timeout }
  return tz !== undefined && check.spec.schedule !== null ? { timeZone: tz } : {}
}

/** An identifier in an error is cut to this. */
const MAX_SHOWN = 100

/** From ids and names with commas between them. Undefined: not given. Null: all. Throws AppError `invalid_request`. */
async function readChannels(call: Call, { channels: text }: Spec): Promise<string[] | null | undefined> {
  if (text === undefined) return undefined
  if (text === '*') return null
  if (text === '') return []
  // Each once: what is read of a long text ends with the channels that a check can have.
  const parts = new Set(text.split(','))
  const known = await findChannels(call)
  const ids = new Set<string>()
  for (const part of parts) {
    if (part === '') throw new AppError('invalid_request', 'empty channel identifier')
    const [found, another] = known.filter(({ id, name }) => id === part.toLowerCase() || name === part)
    const shown = part.slice(0, MAX_SHOWN)
    if (another !== undefined) throw new AppError('invalid_request', `non-unique channel identifier: ${shown}`)
    if (found === undefined) throw new AppError('invalid_request', `invalid channel identifier: ${shown}`)
    ids.add(found.id)
    if (ids.size > LIMITS.chosenChannels) throw jsonFault(`channels has more than ${LIMITS.chosenChannels} channels`)
  }
  return [...ids]
}

/** What the verbs find, which see what is stored. */
async function inWordsOfHealthchecks<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (isSlugTaken(error)) throw new AppError('invalid_request', 'slug is taken')
    if (!(error instanceof AppError) || error.code !== 'invalid_request') throw error
    // It was removed since `readChannels` found it.
    if (error.field === 'channels') throw new AppError('invalid_request', 'invalid channel identifier')
    if (error.field === 'schedule') throw jsonFault('schedule is not a valid cron or OnCalendar expression')
    if (error.field === 'timeZone') throw jsonFault('tz is not a valid timezone')
    throw error
  }
}

export async function deleteCheck(call: Call): Promise<Reply> {
  const check = await findCheck(call)
  const view = await findView(call)
  await removeCheck(call.context, call.caller, check.id)
  return ok(presentCheck(check, view))
}

export async function pauseCheck(call: Call): Promise<Reply> {
  const { context, caller } = call
  const { id } = await findCheck(call)
  return ok(presentCheck(await pause(context, caller, id), await findView(call)))
}

export async function resumeCheck(call: Call): Promise<Reply> {
  const { context, caller } = call
  const { id, state } = await findCheck(call)
  if (state.status !== 'paused') return { status: 409, text: 'check is not paused' }
  return ok(presentCheck(await resume(context, caller, id), await findView(call)))
}
