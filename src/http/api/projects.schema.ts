import { z } from 'zod'
import * as field from './fields.ts'

export const NewProject = z
  .strictObject({ name: field.name('project'), slug: field.slug('project').optional() })
  .meta({ id: 'NewProject' })

export const ProjectUpdate = z
  .strictObject({ name: field.name('project').optional() })
  .meta({ id: 'ProjectUpdate', description: 'Omitted fields keep their values.' })

export const Project = z
  .object({
    id: z.string().meta({ format: 'uuid' }),
    name: z.string(),
    slug: z.string(),
    created_at: field.instant('When the project was made.'),
  })
  .meta({ id: 'Project' })

export const ProjectList = field.listOf('ProjectList', 'projects', Project)

export const ProjectListQuery = field.pageQuery('projects')

export const ProjectParams = field.idOf('project')
