import { beforeEach, describe, expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let project: string
const api = use(startTestApi)
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: 'Test' })).body.id
})

const create = (tags?: unknown) => api.client.post('/checks', { project_id: project, name: 'Backup', tags })
const manyTags = (count: number) => Array.from({ length: count }, (_, index) => `tag-${index}`)

describe('the tags of a check', () => {
  it.each([
    ['none', []],
    ['twenty', manyTags(20)],
    ['every character that they may have', ['AZaz09_.:/-']],
    ['one of fifty characters', ['t'.repeat(50)]],
    ['words that differ in case', ['b', 'a', 'A']],
  ])('can be %s, in the order that they were given', async (_, tags) => {
    const { status, body } = await create(tags)
    expect({ status, tags: body.tags }).toEqual({ status: 201, tags })
    expect((await api.client.get(`/checks/${body.id}`)).body.tags).toEqual(tags)
  })

  it.each([
    ['twenty-one', manyTags(21), 'tags must be a list of at most 20 different tags'],
    ['one twice', ['a', 'b', 'a'], 'tags must be a list of at most 20 different tags'],
    ['null', null, 'tags cannot be null'],
    ['text', 'a', 'tags must be a list of at most 20 different tags'],
    ['an empty one', ['a', ''], 'tags.1 must be a tag: 1 to 50 characters of A-Z, a-z, 0-9, _, ., :, / and -'],
    ['fifty-one characters', ['t'.repeat(51)], 'tags.0 must be a tag:'],
    ['a space', ['a b'], 'tags.0 must be a tag:'],
    ['a line break at the end', ['a\n'], 'tags.0 must be a tag:'],
    ['a letter with an accent', ['é'], 'tags.0 must be a tag:'],
    ['a number', [1], 'tags.0 must be a tag:'],
  ])('cannot be %s', async (_, tags, error) => {
    const { status, body } = await create(tags)
    expect(status).toBe(400)
    expect(body.error).toContain(error)
    const { id } = (await create(['kept'])).body
    expect(await api.client.put(`/checks/${id}`, { tags })).toMatchObject({ status: 400, body: { error: body.error } })
    expect((await api.client.get(`/checks/${id}`)).body.tags).toEqual(['kept'])
  })

  it('stay in an update without them, and are replaced by an update with them', async () => {
    const { id } = (await create(['b', 'a'])).body
    const update = async (fields: object) => (await api.client.put(`/checks/${id}`, fields)).body.tags
    expect(await update({ name: 'Other' })).toEqual(['b', 'a'])
    expect(await update({ tags: ['a', 'b'] })).toEqual(['a', 'b'])
    expect(await update({ tags: [] })).toEqual([])
  })
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
    const tags = { both: ['db', 'night'], night: ['night'], none: [] }
    for (const [name, given] of Object.entries(tags))
      await api.client.post('/checks', { project_id: project, name, tags: given })
    const { status, body } = await api.client.get(`/checks?project_id=${project}&${query}`)
    expect(status).toBe(200)
    expect(body.checks.map((check: { name: string }) => check.name)).toEqual(names)
  })

  it.each(['tag=', 'tag=a%20b', 'tag=a&tag=%00', `tag=${'t'.repeat(51)}`])('?%s is rejected', async (query) => {
    const { status, body } = await api.client.get(`/checks?project_id=${project}&${query}`)
    expect(status).toBe(400)
    expect(body.error).toContain('tag')
  })
})
