/** Projects: what checks belong to (design, section 3.5). */

import { inPieces } from '../../domain/page.ts'
import {
  createProject as create,
  getProject as get,
  listProjects as list,
  type ProjectRecord,
  removeProject as remove,
  updateProject as update,
} from '../../tenancy/projects.ts'
import { given, readEntries, toIso, toPageRequest } from './present.ts'
import { NewProject, Project, ProjectList, ProjectListQuery, ProjectParams, ProjectUpdate } from './projects.schema.ts'
import { endpoint } from './route.ts'

export const listProjects = endpoint({
  id: 'listProjects',
  summary: 'List the projects',
  query: ProjectListQuery,
  status: 200,
  response: ProjectList,
  async handle({ context, caller, query }) {
    const pieces = inPieces(toPageRequest(query), (piece) => list(context, caller, piece))
    const { entries, next_cursor } = await readEntries('projects', pieces, presentProject)
    return { projects: entries, next_cursor }
  },
})

export const createProject = endpoint({
  id: 'createProject',
  summary: 'Create a project',
  body: NewProject,
  status: 201,
  response: Project,
  errors: ['slug_taken'],
  handle: async ({ context, caller, body: { name, slug } }) =>
    presentProject(await create(context, caller, slug === undefined ? { name } : { name, slug })),
})

export const getProject = endpoint({
  id: 'getProject',
  summary: 'Get a project',
  params: ProjectParams,
  status: 200,
  response: Project,
  handle: async ({ context, caller, params }) => presentProject(await get(context, caller, params.id)),
})

export const updateProject = endpoint({
  id: 'updateProject',
  summary: 'Change the name of a project; its slug stays',
  params: ProjectParams,
  body: ProjectUpdate,
  status: 200,
  response: Project,
  handle: async ({ context, caller, params, body }) =>
    presentProject(await update(context, caller, params.id, given(body))),
})

export const removeProject = endpoint({
  id: 'removeProject',
  summary: 'Remove a project; it must hold no checks',
  params: ProjectParams,
  status: 204,
  response: null,
  errors: ['project_not_empty'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})

function presentProject({ id, name, slug, createdAt }: ProjectRecord) {
  return { id, name, slug, created_at: toIso(createdAt) }
}
