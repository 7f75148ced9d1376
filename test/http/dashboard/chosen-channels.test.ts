/** The fields of a check's form that choose its channels and how a pause ends. */

import { beforeAll, beforeEach, expect, it } from 'vitest'
import { getCheck } from '../../../src/checks/find-checks.ts'
import { valuesOfCheck } from '../../../src/http/dashboard/pages/checks/check-values.ts'
import { digestValues, WAS } from '../../../src/http/dashboard/ui/form.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'
import { visit } from '../../support/visitor.ts'

let own: string
let shared: string
let elsewhere: string
let id: string
const api = use(startTestApi)
const visitor = use(() => visit(api, 'write'))
beforeAll(async () => {
  const otherProject = (await api.client.post('/projects', { name: 'Other' })).body.id
  own = await addChannel('Own <b>', api.project)
  shared = await addChannel('Shared')
  elsewhere = await addChannel('Elsewhere', otherProject)
})
beforeEach(async () => {
  id = (await api.addCheck()).id
})

const addChannel = async (name: string, project_id?: string): Promise<string> =>
  (await api.addChannel({ name, project_id })).id
const check = async () => (await api.client.get(`/checks/${id}`)).body
const editPage = async () => (await visitor.get(`/checks/${id}/edit`)).text
const boxesOf = (page: string) =>
  [...page.matchAll(/<input type="checkbox" name="channels" value="([^"]*)"( checked)?>/g)].map(
    ([, value, isChecked]) => [value, isChecked !== undefined],
  )

/** As a browser sends it: the hidden field, then the boxes that are checked. */
async function save(channels: readonly string[], more: Record<string, string> = {}) {
  const { organizationId } = api
  const record = await getCheck(api.context, { organizationId, projectId: null }, id)
  const was = digestValues(valuesOfCheck(record))
  return visitor.post(`/checks/${id}/edit`, { [WAS]: was, ...more, channels: ['', ...channels] })
}

it('offers the channels that the check can notify, with all of them chosen', async () => {
  expect(boxesOf(await editPage())).toEqual([
    ['all', true],
    [own, false],
    [shared, false],
  ])
  expect(await editPage()).toContain('Own &lt;b&gt;')
  const ofNew = boxesOf((await visitor.get('/checks/new')).text)
  expect(ofNew).toEqual([['all', true], ...[own, shared, elsewhere].map((one) => [one, false])])
})

it.each<[string, () => string[], () => unknown]>([
  ['one', () => [own], () => [own]],
  ['none', () => [], () => []],
  ['all beside one: all', () => ['all', own], () => null],
])('saves %s', async (_, boxes, stored) => {
  expect((await save(boxes())).location).toBe(`/checks/${id}?done=check-saved`)
  expect((await check()).channels).toEqual(stored())
})

it('keeps a chosen channel that has left the project, until its box is cleared', async () => {
  await save([own, shared])
  await api.database.query('update channels set project_id = (select id from projects where slug = $1) where id = $2', [
    'other',
    own,
  ])
  expect(boxesOf(await editPage())).toContainEqual([own, true])
  await api.database.query('update channels set project_id = $1 where id = $2', [api.project, own])
})

it('says which field is at fault when a channel of another project is sent', async () => {
  const { status, text } = await save([elsewhere])
  expect(status).toBe(422)
  expect(text).toMatch(/<small id="channels-fault" class="fault">Channels must be channels of the project/)
  expect((await check()).channels).toBeNull()
})

it('changes neither field when the user changes another one', async () => {
  await api.client.put(`/checks/${id}`, { channels: [shared], resume_on_ping: true })
  expect((await save([shared], { name: 'Other', resume_on_ping: 'on' })).status).toBe(303)
  expect(await check()).toMatchObject({ name: 'Other', channels: [shared], resume_on_ping: true })
})

it('keeps the channels that another user changed, in whatever order they were chosen', async () => {
  await api.client.put(`/checks/${id}`, { channels: [shared, own] })
  const [, was = ''] = /name="was" value="([^"]*)"/.exec(await editPage()) ?? []
  await api.client.put(`/checks/${id}`, { channels: [shared] })
  // A browser sends the boxes in the order of the page.
  await visitor.post(`/checks/${id}/edit`, { [WAS]: was, name: 'Other', channels: ['', own, shared] })
  expect(await check()).toMatchObject({ name: 'Other', channels: [shared] })
})

it('lets the next ping end a pause, and the page of the check says so', async () => {
  expect((await visitor.get(`/checks/${id}`)).text).not.toContain('with its next ping')
  await save(['all'], { resume_on_ping: 'on' })
  expect(await check()).toMatchObject({ resume_on_ping: true, channels: null })
  await save([own], { resume_on_ping: 'on' })
  const { text } = await visitor.get(`/checks/${id}`)
  expect(text).toContain('with its next ping')
  expect(text).toContain('one chosen channel')
  await save(['all'], { resume_on_ping: '' })
  expect((await check()).resume_on_ping).toBe(false)
})

it('offers the channels of its project, however many others there are before them', async () => {
  await using many = await startTestApi()
  const [one, reader] = [many.client, await visit(many, 'write')]
  const { rows } = await many.database.query<{ id: string }>(
    `with made as (
        insert into projects (id, organization_id, name, slug, created_at)
        select gen_random_uuid(), $1, 'p' || n, 'p' || n, now() from generate_series(1, 120) n returning id)
      insert into channels (id, organization_id, project_id, kind, name, sealed, sealed_with, event_types, created_at)
      select gen_random_uuid(), $1, id, 'slack', 'foreign', '', '', '{check.down}', now() - interval '1 day' from made returning id`,
    [many.organizationId],
  )
  expect(rows).toHaveLength(120)
  const config = { url: 'https://hooks.example.com/x' }
  const { id: last } = (await one.post('/channels', { kind: 'slack', name: 'Own', project_id: many.project, config }))
    .body
  const { id: checkId } = (await one.post('/checks', { project_id: many.project, name: 'Backup' })).body
  expect(boxesOf((await reader.get(`/checks/${checkId}/edit`)).text)).toEqual([
    ['all', true],
    [last, false],
  ])
  const ofNew = boxesOf((await reader.get('/checks/new')).text)
  expect(ofNew).toHaveLength(122)
  expect(ofNew).toContainEqual([last, false])
})

it('names the channels, and no tag, for a text that is the id of none', async () => {
  const { status, text } = await save(['none'])
  expect(status).toBe(422)
  expect(text).toMatch(/<small id="channels-fault" class="fault">Channels /)
})
