import { PAGE_LIMIT } from '../../../domain/page.ts'
import { listProjects } from '../../../tenancy/projects.ts'
import type { Request } from '../page.ts'

export type ProjectNames = ReadonlyMap<string, string>

/** The names of the caller's projects, by their ids. */
export async function readProjectNames({
  context,
  caller,
}: Pick<Request, 'context' | 'caller'>): Promise<ProjectNames> {
  const { rows } = await listProjects(context, caller, { limit: PAGE_LIMIT, after: null })
  return new Map(rows.map(({ id, name }) => [id, name]))
}
