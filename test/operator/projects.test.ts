/** Which project a HeartbeatCheck belongs to: its namespace decides, out of its tenants' reach (design, section 6, "Projects"). */

import { describe, expect, it } from 'vitest'
import { eventually } from '../support/until.ts'
import { openWorkplace, type Workplace } from '../support/workplace.ts'
import { useScene } from './scene.ts'

const t = useScene()

const ANNOTATION = 'heartbeat-operator.io/projects'
const hourly = (project: string) => ({ periodSeconds: 3_600, project })
const annotate = ({ name }: Workplace, projects: string | null) =>
  t.cluster.api('PATCH', `/api/v1/namespaces/${name}`, { metadata: { annotations: { [ANNOTATION]: projects } } })

async function makeProject(slug: string): Promise<string> {
  const { status, body } = await t.app.call('POST', '/projects', { name: slug, slug })
  expect(status).toBe(201)
  return body.id
}

async function projectOf(place: Workplace, name: string): Promise<string> {
  const { status } = await place.get(name)
  const { body } = await t.app.call('GET', `/checks/${status!.checkId}`)
  const { projects } = (await t.app.call('GET', '/projects')).body
  return projects.find(({ id }: { id: string }) => id === body.project_id).slug
}

describe('without an annotation and PROJECTS', () => {
  it('each namespace has a project of its own, by its name', async () => {
    const shop = await openWorkplace(t.cluster)
    const stock = await openWorkplace(t.cluster)
    await Promise.all([shop.makeReady('a'), shop.makeReady('b'), stock.makeReady('a')])
    expect(await projectOf(shop, 'a')).toBe(shop.name)
    expect(await projectOf(shop, 'b')).toBe(shop.name)
    expect(await projectOf(stock, 'a')).toBe(stock.name)
  })
})

describe('spec.project', () => {
  it('spec.project is rejected until the Namespace allows it, and is then retried without a change', async () => {
    const place = await openWorkplace(t.cluster)
    await makeProject('payments')
    await place.apply('a', hourly('payments'))
    const message = await place.stalled('a', 'ProjectNotAllowed')
    expect(message).toBe(
      `namespace ${place.name} may not use the project "payments": it may use its own project only. Remove spec.project, or let an administrator add "payments" to the annotation ${ANNOTATION} of the Namespace`,
    )
    expect((await place.get('a')).status).not.toHaveProperty('checkId')
    expect(await place.find('secrets', 'a-heartbeat')).toBeNull()
    await place.event('a', 'ProjectNotAllowed')
    expect((await place.events('a')).filter(({ reason }) => reason === 'ProjectNotAllowed')).toEqual([
      expect.objectContaining({ type: 'Warning', note: message }),
    ])
    await annotate(place, 'billing, payments')
    await place.ready('a')
    expect(await projectOf(place, 'a')).toBe('payments')
  })

  it('may be one that is made later', async () => {
    const place = await openWorkplace(t.cluster, { [ANNOTATION]: 'later' })
    await place.apply('a', hourly('later'))
    expect(await place.stalled('a', 'ProjectNotFound')).toContain('there is none with that slug')
    await makeProject('later')
    await place.ready('a')
    expect(await projectOf(place, 'a')).toBe('later')
  })

  it('a project that is no longer allowed leaves the check where it is, and the status says so', async () => {
    const place = await openWorkplace(t.cluster, { [ANNOTATION]: 'former' })
    await makeProject('former')
    await place.makeReady('a', hourly('former'))
    const url = await place.pingUrl('a')
    await annotate(place, null)
    await place.stalled('a', 'ProjectNotAllowed')
    expect((await fetch(url)).status).toBe(200)
    expect(await projectOf(place, 'a')).toBe('former')
  })
})

describe('the annotation of the Namespace', () => {
  it('that may not be read allows its own project only, and the condition has the answer of the API server', async () => {
    await makeProject('unreadable')
    const place = await openWorkplace(t.cluster, { [ANNOTATION]: 'unreadable' })
    const message = 'namespaces is forbidden: no such right'
    const grant = t.cluster.server.forbid((path) => /^\/api\/v1\/namespaces(\/[^/]+)?$/.test(path), message)
    await t.restart()
    await place.apply('a', hourly('unreadable'))
    const said = await place.stalled('a', 'ProjectNotAllowed')
    expect(said).toContain('it may use its own project only')
    expect(said).toContain(`The operator cannot read the Namespace: `)
    expect(said).toContain(message)
    grant()
    await place.ready('a')
  })
})

describe('a change of the annotation', () => {
  it('moves the checks that exist soon, though no poll and no resync is due', async () => {
    await t.restart({ pollMs: 3_600_000, resyncMs: 3_600_000 })
    await Promise.all([makeProject('before'), makeProject('after')])
    const place = await openWorkplace(t.cluster, { [ANNOTATION]: 'before' })
    await place.makeReady('a')
    const url = await place.pingUrl('a')
    await annotate(place, 'after')
    await eventually('it has moved', async () => (await projectOf(place, 'a')) === 'after')
    expect(await place.pingUrl('a')).toBe(url)
    expect(
      t.cluster.server.requests.filter(
        ({ method, path }) => method === 'GET' && path === `/api/v1/namespaces/${place.name}`,
      ),
    ).toEqual([])
    await t.restart()
  })
})

describe('the configuration', () => {
  it('PROJECTS replaces the annotation, also where it names nothing', async () => {
    await Promise.all([makeProject('given'), makeProject('annotated')])
    const named = await openWorkplace(t.cluster, { [ANNOTATION]: 'annotated' })
    const unnamed = await openWorkplace(t.cluster, { [ANNOTATION]: 'annotated' })
    await t.restart({ projects: new Map([[named.name, ['given']]]) })
    await Promise.all([named.makeReady('a'), unnamed.makeReady('a')])
    expect(await projectOf(named, 'a')).toBe('given')
    expect(await projectOf(unnamed, 'a')).toBe(unnamed.name)
    await named.apply('b', hourly('annotated'))
    expect(await named.stalled('b', 'ProjectNotAllowed')).toBe(
      `namespace ${named.name} may not use the project "annotated": it may use given and its own. Remove spec.project, or let an administrator add "annotated" to its projects in the variable PROJECTS (chart value projects)`,
    )
    await t.restart()
  })

  it('PROJECT_ANNOTATION=off leaves each namespace its own project', async () => {
    await makeProject('switched-off')
    const place = await openWorkplace(t.cluster, { [ANNOTATION]: 'switched-off' })
    await t.restart({ isProjectAnnotationOn: false })
    await place.makeReady('a')
    expect(await projectOf(place, 'a')).toBe(place.name)
    await t.restart()
  })
})
