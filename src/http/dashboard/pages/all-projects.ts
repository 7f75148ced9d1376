import { PAGE_LIMIT } from '../../../domain/page.ts'
import { listProjects, type ProjectRecord } from '../../../tenancy/projects.ts'
import type { Request } from '../page.ts'

type Reading = Pick<Request, 'context' | 'caller'>

/** The projects of the caller, as far as one page of a list has them. */
export async function listAllProjects({ context, caller }: Reading): Promise<readonly ProjectRecord[]> {
  return (await listProjects(context, caller, { limit: PAGE_LIMIT, after: null })).rows
}

export type ProjectNames = ReadonlyMap<string, string>

/** The names of the same projects, by their ids. */
export async function readProjectNames(reading: Reading): Promise<ProjectNames> {
  return new Map((await listAllProjects(reading)).map(({ id, name }) => [id, name]))
}
