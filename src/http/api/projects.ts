/** Projects: what checks belong to (design, section 3.5). */

import {
  createProject as create,
  listProjects as list,
  type ProjectRecord,
  removeProject as remove,
} from '../../tenancy/projects.ts'
import { PageQuery } from './fields.ts'
import { presentNext, toIso, toPageRequest } from './present.ts'
import { NewProject, Project, ProjectList, ProjectParams } from './projects.schema.ts'
import { endpoint } from './route.ts'

export const listProjects = endpoint({
  id: 'listProjects',
  summary: 'List the projects',
  query: PageQuery,
  status: 200,
  response: ProjectList,
  async handle({ context, caller, query }) {
    const page = await list(context, caller, toPageRequest(query))
    return { projects: page.rows.map(presentProject), ...presentNext(page) }
  },
})

export const createProject = endpoint({
  id: 'createProject',
  summary: 'Create a project',
  body: NewProject,
  status: 201,
  response: Project,
  errors: ['conflict'],
  handle: async ({ context, caller, body: { name, slug } }) =>
    presentProject(await create(context, caller, slug === undefined ? { name } : { name, slug })),
})

export const removeProject = endpoint({
  id: 'removeProject',
  summary: 'Remove a project; it must hold no checks',
  params: ProjectParams,
  status: 204,
  response: null,
  errors: ['conflict'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

function presentProject({ id, name, slug, createdAt }: ProjectRecord) {
  return { id, name, slug, created_at: toIso(createdAt) }
}
