/** Projects: what checks belong to (design, section 3.5). */

import { z } from 'zod'
import * as verbs from '../../tenancy/projects.ts'
import * as field from './fields.ts'
import { listEndpoint } from './list-page.ts'
import { given, inCamelCase } from './present.ts'
import { endpoint } from './route.ts'

export const NewProject = field.strictShape('NewProject', {
  name: field.name('project'),
  slug: field.slug('project').optional(),
})

export const ProjectUpdate = z
  .strictObject({ name: field.name('project').optional() })
  .meta({ id: 'ProjectUpdate', description: 'Omitted fields keep their values.' })

export const Project = field.shape('Project', {
  id: field.id(),
  name: z.string(),
  slug: z.string(),
  created_at: field.instant('When the project was made.'),
})

export const ProjectParams = field.idOf('project')

export const listProjects = listEndpoint({
  list: 'projects',
  entry: Project,
  summary: 'List the projects',
  query: field.pageQuery('projects'),
  read: ({ context, caller }, piece) => verbs.listProjects(context, caller, piece),
})

export const createProject = endpoint({
  summary: 'Create a project',
  body: NewProject,
  status: 201,
  response: Project,
  errors: ['slug_taken'],
  handle: ({ context, caller, body }) => verbs.createProject(context, caller, inCamelCase(body)),
})

export const getProject = endpoint({
  summary: 'Get a project',
  params: ProjectParams,
  response: Project,
  handle: ({ context, caller, params }) => verbs.getProject(context, caller, params.id),
})

export const updateProject = endpoint({
  summary: 'Change the name of a project; its slug stays',
  params: ProjectParams,
  body: ProjectUpdate,
  response: Project,
  handle: ({ context, caller, params, body }) => verbs.updateProject(context, caller, params.id, given(body)),
})

export const removeProject = endpoint({
  summary: 'Remove a project; it must hold no checks',
  params: ProjectParams,
  errors: ['project_not_empty'],
  handle: ({ context, caller, params }) => verbs.removeProject(context, caller, params.id),
})
