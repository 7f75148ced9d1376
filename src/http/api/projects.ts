/** Projects: what checks belong to (design, section 3.5). */

import {
  createProject as create,
  getProject as get,
  listProjects as list,
  removeProject as remove,
  updateProject as update,
} from '../../tenancy/projects.ts'
import { readList } from './list-page.ts'
import { given, inCamelCase } from './present.ts'
import { NewProject, Project, ProjectList, ProjectListQuery, ProjectParams, ProjectUpdate } from './projects.schema.ts'
import { endpoint } from './route.ts'

export const listProjects = endpoint({
  summary: 'List the projects',
  query: ProjectListQuery,
  response: ProjectList,
  handle: ({ context, caller, query }) => readList('projects', Project, query, (piece) => list(context, caller, piece)),
})

export const createProject = endpoint({
  summary: 'Create a project',
  body: NewProject,
  status: 201,
  response: Project,
  errors: ['slug_taken'],
  handle: ({ context, caller, body }) => create(context, caller, inCamelCase(body)),
})

export const getProject = endpoint({
  summary: 'Get a project',
  params: ProjectParams,
  response: Project,
  handle: ({ context, caller, params }) => get(context, caller, params.id),
})

export const updateProject = endpoint({
  summary: 'Change the name of a project; its slug stays',
  params: ProjectParams,
  body: ProjectUpdate,
  response: Project,
  handle: ({ context, caller, params, body }) => update(context, caller, params.id, given(body)),
})

export const removeProject = endpoint({
  summary: 'Remove a project; it must hold no checks',
  params: ProjectParams,
  errors: ['project_not_empty'],
  handle: ({ context, caller, params }) => remove(context, caller, params.id),
})
