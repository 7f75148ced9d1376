/**
 * The ping key and the badge key of a project (design, section 3.5): rights, so only admins see them, and clients of
 * healthchecks' API that may write see addresses of badges. The database makes them.
 */

import { audited } from '../audit/audited.ts'
import type { Principal, Tenant } from '../domain/access.ts'
import type { Act } from '../domain/audit.ts'
import type { Context } from '../store/context.ts'
import * as store from '../store/tenancy/project-keys.ts'
import type { ProjectRow } from '../store/tenancy/projects.ts'
import { actOn, lockProject } from './projects.ts'

export type ProjectKeyKind = store.ProjectKeyKind

/** Null when the project has none. Throws AppError `not_found` for an unknown, foreign or malformed id. */
export async function getProjectKey(
  { database }: Pick<Context, 'database'>,
  tenant: Tenant,
  id: string,
  kind: ProjectKeyKind,
): Promise<string | null> {
  await lockProject(database, tenant, id, 'read')
  return store.findProjectKey(database, id, kind)
}

/** Returns the new key. The key before is worth nothing once this has committed. Throws as `getProjectKey` does. */
export function createProjectKey(context: Context, by: Principal, id: string, kind: ProjectKeyKind): Promise<string> {
  return audited(context, by, async (tx) => {
    const project = await lockProject(tx, by, id, 'change')
    const result = await store.renewProjectKey(tx, id, kind)
    return { result, acts: [changed(project, kind, 'created')] }
  })
}

/** A project without one stays as it is. Throws as `getProjectKey` does. */
export function revokeProjectKey(context: Context, by: Principal, id: string, kind: ProjectKeyKind): Promise<void> {
  return audited(context, by, async (tx) => {
    const project = await lockProject(tx, by, id, 'change')
    const wasThere = await store.deleteProjectKey(tx, id, kind)
    return { result: undefined, acts: wasThere ? [changed(project, kind, 'revoked')] : [] }
  })
}

function changed(project: ProjectRow, kind: ProjectKeyKind, change: 'created' | 'revoked'): Act {
  return actOn(project, 'project.changed', { changed: [`${kind}_key`], change })
}
