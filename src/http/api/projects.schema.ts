import { z } from 'zod'
import * as field from './fields.ts'

export const NewProject = field.strictShape('NewProject', {
  name: field.name('project'),
  slug: field.slug('project').optional(),
})

export const ProjectUpdate = z
  .strictObject({ name: field.name('project').optional() })
  .meta({ id: 'ProjectUpdate', description: 'Omitted fields keep their values.' })

export const Project = field.shape('Project', {
  id: z.string().meta({ format: 'uuid' }),
  name: z.string(),
  slug: z.string(),
  created_at: field.instant('When the project was made.'),
})

export const ProjectList = field.listOf('ProjectList', 'projects', Project)

export const ProjectListQuery = field.pageQuery('projects')

export const ProjectParams = field.idOf('project')
