/** The tags and the labels of a check, from requests to lists. Their rules: test/unit/http/api/check-fields.test.ts. */

import { beforeEach, describe, expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let project: string
const api = use(startTestApi)
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: 'Test' })).body.id
})

const create = (fields: object = {}) => api.client.post('/checks', { project_id: project, name: 'Backup', ...fields })
const createOne = async (fields: object) => (await create(fields)).body
const wordsOf = ({ tags, labels }: { tags: unknown; labels: unknown }) => ({ tags, labels })
const read = async (id: string) => wordsOf((await api.client.get(`/checks/${id}`)).body)
const update = async (id: string, fields: object) => (await api.client.put(`/checks/${id}`, fields)).body
const many = (count: number) => Array.from({ length: count }, (_, index) => `w-${index}`)
const manyLabels = (count: number) => Object.fromEntries(many(count).map((name) => [name, '']))

const TAGS = ['z', 'AZaz09_.:/-', 'Z', 't'.repeat(50)]
const LABELS = {
  [`${'p'.repeat(253)}/${'n'.repeat(63)}`]: 'v'.repeat(63),
  'app.kubernetes.io/part-of': 'web',
  ...{ 'A_b.C-9': 'x', nightly: '' },
  // Names of what every object has, and of our own.
  ...{ constructor: 'a', toString: 'b', check: 'a', namespace: 'b', severity: 'c' },
}

it('are kept: twenty tags in the order that they were given, and thirty-two labels', async () => {
  const fields = { tags: [...TAGS, ...many(16)], labels: { ...LABELS, ...manyLabels(23) } }
  const { status, body } = await create(fields)
  expect([status, wordsOf(body)]).toEqual([201, fields])
  expect(await read(body.id)).toEqual(fields)
})

it.each([
  [{ tags: [...TAGS, ...many(17)] }, 'tags must be a list of at most 20 different tags'],
  [{ tags: ['a', 'a b'] }, 'tags.1 must be a tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -'],
  [{ labels: manyLabels(33) }, 'labels must be an object of at most 32 labels'],
  [{ labels: { 'Example.com/a': '' } }, expect.stringContaining('labels.Example.com/a must have a name of up to 63')],
])('cannot be %j', async (fields, error) => {
  expect(await create(fields)).toMatchObject({ status: 400, body: { error } })
  const kept = { tags: ['kept'], labels: { kept: 'yes' } }
  const { id } = await createOne(kept)
  expect(await api.client.put(`/checks/${id}`, fields)).toMatchObject({ status: 400, body: { error } })
  expect(await read(id)).toEqual(kept)
})

it('stay in an update without them, and are replaced as a whole by an update with them', async () => {
  const first = { tags: ['b', 'a'], labels: { a: '1', b: '2' } }
  const { id } = await createOne(first)
  expect(wordsOf(await update(id, { name: 'Other' }))).toEqual(first)
  for (const fields of [
    { tags: ['a', 'b'], labels: { b: '3', c: '4' } },
    { tags: [], labels: {} },
  ])
    expect(wordsOf(await update(id, fields))).toEqual(fields)
})

it('labels in another order are the same: nothing changed', async () => {
  const { id, updated_at } = await createOne({ labels: { a: '1', 'b.c/d': '2' } })
  expect(await update(id, { labels: { 'b.c/d': '2', a: '1' } })).toMatchObject({ updated_at })
  await update(id, { name: 'Renamed' })
  const { entries } = (await api.client.get(`/audit?target_id=${id}`)).body
  expect(entries[0]).toMatchObject({ action: 'check.changed', detail: { changed: ['name'] } })
})

it('labels in lists have the order of their names', async () => {
  await create({ labels: { b: '2', a: '1' } })
  const { checks } = (await api.client.get(`/checks?project_id=${project}`)).body
  expect(JSON.stringify(checks[0].labels)).toBe('{"a":"1","b":"2"}')
})

describe('the filter tag', () => {
  it.each([
    ['tag=night', ['both', 'night']],
    ['tag=night&tag=db', ['both']],
    ['tag=db&tag=db', ['both']],
    ['tag=Night', []],
    ['tag=nigh', []],
    ['tag=night&q=BOTH', ['both']],
  ])('?%s lists the checks that have all tags', async (query, names) => {
    const given = { both: ['db', 'night'], night: ['night'], none: [] }
    for (const [name, tags] of Object.entries(given)) await create({ name, tags })
    const { status, body } = await api.client.get(`/checks?project_id=${project}&${query}`)
    expect(status).toBe(200)
    expect(body.checks.map((check: { name: string }) => check.name)).toEqual(names)
  })

  it.each(['tag=', 'tag=a%20b', 'tag=a&tag=%00', `tag=${'t'.repeat(51)}`])('?%s is rejected', async (query) => {
    const { status, body } = await api.client.get(`/checks?project_id=${project}&${query}`)
    expect([status, body.error]).toEqual([400, expect.stringContaining('tag')])
  })
})
