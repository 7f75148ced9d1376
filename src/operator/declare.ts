/** Declares a HeartbeatCheck to the service: its specification, the project that its namespace may use, the check that it has. */

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

/** What the resource declares, with defaults. Throws Stalled for a specification that makes no sense. */
export function readDeclaration(object: HeartbeatCheck): CheckDeclaration {
  const read = readHeartbeatCheck(object)
  if (read.ok) return read.declaration
  throw new Stalled('InvalidSpec', read.faults.join('; '))
}

/** Brings the check in line with its resource. Throws Stalled for what a person has to correct; a retry corrects any other error. */
export async function declare(
  { context, cluster, namespaces }: DeclareOptions,
  object: HeartbeatCheck,
  declaration: CheckDeclaration,
): Promise<Declared> {
  const { spec, suspend, project } = declaration
  const { namespace, name, annotations } = object.metadata as { namespace: string } & HeartbeatCheck['metadata']
  const isStalled = object.status?.conditions?.some(({ type }) => type === 'Stalled') ?? false
  try {
    const allowed = await namespaces.allowedProjects(namespace, isStalled ? 'fresh' : 'cached')
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
 * A check that lost the mark of its resource, by manual SQL or by a restore of an older backup, is found by the id in the status, and
 * keeps its ping URL. The rules are those of an adoption, so that the id gives no more rights than the annotation. When they reject
 * it, the resource is declared without the id.
 */
async function declareKnown(context: Context, wanted: Omit<Declaration, 'adoptId'>, knownId: string | null) {
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
