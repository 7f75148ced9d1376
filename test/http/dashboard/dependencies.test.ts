/** What a check depends on, in its form and on its page. */

import { expect, it } from 'vitest'
import { readForm } from '../../support/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

const api = use(startTestApi)
const visitor = use(() => visit(api, 'write'))
const add = async (name: string, fields: object = {}): Promise<string> => (await api.addCheck({ name, ...fields })).id
const dependenciesOf = async (id: string) => (await api.client.get(`/checks/${id}`)).body.depends_on
const post = async (path: string, fields: Record<string, string>) =>
  visitor.post(path, { ...readForm((await visitor.get(path)).text, path), ...fields })

it('is given by slugs of the project, or by ids, and shown so', async () => {
  const [database, network] = [await add('Database', { slug: 'database' }), await add('Network')]
  const other = (await api.client.post('/projects', { name: 'Other' })).body.id
  const elsewhere = await add('Elsewhere', { project_id: other })
  const { location } = await post('/checks/new', { name: 'Backup', depends_on: `database, ${network}` })
  const id = /[0-9a-f-]{36}/.exec(location!)![0]
  expect(await dependenciesOf(id)).toEqual([database, network])
  const path = `/checks/${id}/edit`
  expect((await post(path, { depends_on: `${elsewhere} database` })).status).toBe(303)
  expect(await dependenciesOf(id)).toEqual([elsewhere, database])
  expect(readForm((await visitor.get(path)).text, path).depends_on).toBe(`${elsewhere} database`)
  // A form that was not changed gives back what it shows.
  expect((await post(path, { name: 'Other name' })).status).toBe(303)
  expect(await dependenciesOf(id)).toEqual([elsewhere, database])
})

it.each([
  ['an unknown slug', 'nothing-of-the-kind', 'must be slugs of checks of the project, or ids of checks'],
  ['an unknown id', '01900000-0000-7000-8000-000000000000', 'not found'],
  ['a ring', 'own', 'must make no ring: Own -&gt; Own'],
])('%s is a fault of the field', async (_, depends_on, fault) => {
  const { body } = await api.client.get(`/checks?project_id=${api.project}&slug=own`)
  const id = body.checks[0]?.id ?? (await add('Own', { slug: 'own' }))
  const { status, text } = await post(`/checks/${id}/edit`, { depends_on })
  expect(status).toBe(422)
  expect(/<small id="depends_on-fault" class="fault">([^<]*)</.exec(text)?.[1]).toContain(fault)
})

it('is on the page, both ways, with the status of each and up to twenty dependents', async () => {
  const hub = await add('Hub')
  const page = async (id: string) => (await visitor.get(`/checks/${id}`)).text
  expect(await page(hub)).not.toContain('Depended on by')
  const first = await add('Leaf 01', { depends_on: [hub] })
  for (let count = 2; count <= 20; count += 1)
    await add(`Leaf ${String(count).padStart(2, '0')}`, { depends_on: [hub] })
  const links = async (id: string) => {
    const [, section] = /id="dependencies-title"([\s\S]*?)<\/section>/.exec(await page(id)) ?? []
    return {
      ids: Array.from(section!.matchAll(/href="\/checks\/([^"]+)"/g), ([, one]) => one),
      hasMore: section!.includes('and more'),
      hasStatus: section!.includes('new'),
    }
  }
  expect(await links(first)).toEqual({ ids: [hub], hasMore: false, hasStatus: true })
  expect(await links(hub)).toMatchObject({ hasMore: false, ids: expect.arrayContaining([first]) })
  await add('Leaf 21', { depends_on: [hub] })
  const all = await links(hub)
  expect([all.ids.length, all.hasMore]).toEqual([20, true])
})
