/** Projects of the organization. */

import * as verbs from '../../../../tenancy/projects.ts'
import { parsePart } from '../../../api/faults.ts'
import { given } from '../../../api/present.ts'
import { NewProject, ProjectUpdate } from '../../../api/projects.ts'
import { type Html, html, isolated } from '../../html.ts'
import { act, action, type Page, page, type Redirect, type Request, redirect } from '../../page.ts'
import * as ui from '../../ui/form.ts'
import { confirm, crumbs, rowLink, table } from '../../ui/parts.ts'
import { ago } from '../../words/time-words.ts'
import { projectKeyRoutes, renderProjectKeys } from './project-keys.ts'
import { addition, pagerOf, SETTINGS, type Section, showSection } from './section.ts'

const LABELS = { name: 'Name', slug: 'Slug' } as const

export const projects: Section = {
  id: 'projects',
  title: 'Projects',
  async render({ context, caller, now }, view) {
    const list = await verbs.listProjects(context, caller, view)
    return html`<p class="muted">Checks belong to projects. A key can be bound to one project.</p>
${list.rows.length === 0 ? html`<p>There is no project.</p>` : renderTable(list.rows, now)}
${pagerOf(projects, list, view)}
${addition('new-project', 'Create a project', renderForm(view.rejected))}`
  },
}

export const projectRoutes = [
  page('/settings/projects', 'admin', (request) => showSection(request, projects)),
  action('/settings/projects', 'admin', create),
  page('/settings/projects/{id}', 'admin', async (request) => showProject(request, await findProject(request))),
  action('/settings/projects/{id}', 'admin', change),
  page('/settings/projects/{id}/remove', 'admin', async (request) => {
    const { id, name } = await findProject(request)
    const loss = html`<p>The API keys and the channels that are bound to ${isolated(name)} are removed with it. A project that holds checks cannot be removed.</p>`
    return confirm(request, { ask: 'Remove this project', loss, button: 'Remove', back: `/settings/projects/${id}` })
  }),
  act('/settings/projects/{id}/remove', 'admin', verbs.removeProject, '/settings', 'project-removed'),
  ...projectKeyRoutes,
]

const findProject = ({ context, caller, params }: Request) => verbs.getProject(context, caller, params.id!)

function renderTable(rows: readonly verbs.ProjectRecord[], now: number): Html {
  return table<verbs.ProjectRecord>(
    [
      ['Name', ({ slug, name }) => html`<a href="/checks?project=${slug}">${isolated(name)}</a>`, 'name'],
      ['Slug', ({ slug }) => html`<code>${slug}</code>`],
      ['Created', ({ createdAt }) => ago(createdAt, now)],
      [
        'Actions',
        ({ id, name }) =>
          html`${rowLink(`/settings/projects/${id}`, 'Rename, keys, badges', name)} ${rowLink(`/settings/projects/${id}/remove`, 'Remove', name)}`,
        'actions',
      ],
    ],
    rows,
  )
}

function renderForm(rejected?: ui.Rejected): Html {
  const form = ui.stateOf('project', LABELS, rejected)
  const meaning =
    'For addresses and labels: a-z, 0-9, - and _. Empty: derived from the name. It cannot be changed later.'
  return html`<form method="post" action="/settings/projects" class="settings-form" novalidate data-keep="new-project">
${ui.field(form, 'name', ui.text(ui.required))}
${ui.field(form, 'slug', ui.text(), meaning)}
<button type="submit">Create the project</button>
</form>`
}

async function create(request: Request): Promise<Page | Redirect> {
  const { context, caller, form } = request
  try {
    const { name, slug } = parsePart('body', NewProject, { ...ui.typed(form, ['name']), ...ui.filled(form, ['slug']) })
    await verbs.createProject(context, caller, { name, ...given({ slug }) })
    return redirect('/settings', 'project-created')
  } catch (error) {
    return showSection(request, projects, { values: form, faults: ui.faultsOf(error, LABELS) })
  }
}

async function showProject(request: Request, project: verbs.ProjectRecord, rejected?: ui.Rejected): Promise<Page> {
  const { id, name, slug } = project
  const form = ui.stateOf('rename', LABELS, rejected, { name })
  const main = html`${crumbs([SETTINGS], 'Project')}
<article class="narrow">
<h1>${isolated(name)}</h1>
<form method="post" action="/settings/projects/${id}" novalidate>
${ui.wasField({ name }, rejected?.values.get(ui.WAS))}
${ui.field(form, 'name', ui.text(ui.required), `The slug stays: ${slug}`)}
<button type="submit">Save</button>
</form>
${await renderProjectKeys(request, project)}
<p><a href="/settings/projects/${id}/remove">Remove this project</a></p>
</article>`
  return { kind: 'page', status: rejected === undefined ? 200 : 422, title: name, main }
}

async function change(request: Request): Promise<Page | Redirect> {
  const { context, caller, params, form } = request
  const project = await findProject(request)
  try {
    const body = parsePart('body', ProjectUpdate, ui.changes(form, ['name']))
    await verbs.updateProject(context, caller, params.id!, given(body))
    return redirect('/settings', 'project-changed')
  } catch (error) {
    return showProject(request, project, { values: form, faults: ui.faultsOf(error, LABELS) })
  }
}
