/** A HeartbeatCheck as the service is told of it: what it asks for, the project that its namespace may use, the check that it has. */

import { type Declaration, type Declared, declareCheck } from '../checks/declare/declare-check.ts'
import { textsOf } from '../store/checks/columns.ts'
import type { Context } from '../store/context.ts'
import { resolveProject } from '../tenancy/namespace-projects.ts'
import {
  ADOPT_CHECK_ANNOTATION,
  type CheckDeclaration,
  type HeartbeatCheck,
  readHeartbeatCheck,
} from './heartbeat-check.ts'
import type { Namespaces } from './namespaces.ts'
import { isAdoptionRefused, Stalled, toStalled } from './stalled.ts'

export interface DeclareOptions {
  readonly context: Context
  readonly cluster: string
  readonly namespaces: Namespaces
}

/** Throws Stalled for a specification that makes no sense. */
export function readDeclaration(object: HeartbeatCheck): CheckDeclaration {
  const read = readHeartbeatCheck(object)
  if (read.ok) return read.declaration
  throw new Stalled('InvalidSpec', read.faults.join('; '))
}

/** Throws Stalled for what a person has to set right; everything else passes by itself. */
export async function declare(
  { context, cluster, namespaces }: DeclareOptions,
  object: HeartbeatCheck,
  declaration: CheckDeclaration,
): Promise<Declared> {
  const { spec, suspend, project } = declaration
  const { namespace, name, annotations } = object.metadata as { namespace: string } & HeartbeatCheck['metadata']
  const isStalled = object.status?.conditions?.some(({ type }) => type === 'Stalled') ?? false
  try {
    const allowed = await namespaces.allowedProjects(namespace, isStalled ? 'fresh' : 'remembered')
    const { id: projectId } = await resolveProject(context, { cluster, namespace, allowed, wanted: project })
    const resource = { cluster, namespace, name }
    const isNew = object.status === undefined
    const wanted = { resource, projectId, ...textsOf(declaration), spec, suspend, isNew }
    const adoptId = annotations?.[ADOPT_CHECK_ANNOTATION]
    if (adoptId !== undefined) return await declareCheck(context, { ...wanted, adoptId })
    return await declareKnown(context, wanted, object.status?.checkId ?? null)
  } catch (error) {
    throw toStalled(error) ?? error
  }
}

/**
 * A check that lost the mark of its resource (somebody's SQL, or an older backup of the database) is known by the id in the
 * status, and keeps its ping URL. The same rules hold as for an adoption, so that the id opens nothing that the annotation
 * would not; and where they refuse, the resource has whatever check it has without it.
 */
async function declareKnown(
  context: Context,
  wanted: Omit<Declaration, 'adoptId'>,
  knownId: string | null,
): Promise<Declared> {
  if (knownId !== null) {
    try {
      const { check, change } = await declareCheck(context, { ...wanted, adoptId: knownId })
      return { check, change: change === 'adopted' ? 'updated' : change }
    } catch (error) {
      if (!isAdoptionRefused(error)) throw error
    }
  }
  return declareCheck(context, { ...wanted, adoptId: null })
}
