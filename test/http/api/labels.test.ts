import { beforeEach, describe, expect, it } from 'vitest'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

let project: string
const api = use(startTestApi)
beforeEach(async () => {
  project = (await api.client.post('/projects', { name: 'Test' })).body.id
})

const create = (labels?: unknown) => api.client.post('/checks', { project_id: project, name: 'Backup', labels })
const manyLabels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`label-${at}`, '']))
const LONG_NAME = `${'p'.repeat(253)}/${'n'.repeat(63)}`

describe('the labels of a check', () => {
  it.each<[string, object]>([
    ['none', {}],
    ['thirty-two', manyLabels(32)],
    ['names with and without a prefix', { team: 'shop', 'app.kubernetes.io/part-of': 'web', 'A_b.C-9': 'x' }],
    ['of the longest name and value', { [LONG_NAME]: 'v'.repeat(63) }],
    ['without a value', { nightly: '' }],
    ['called as what every object has', { constructor: 'a', toString: 'b' }],
    ['our own names', { check: 'a', namespace: 'b', severity: 'c' }],
  ])('can be %s', async (_, labels) => {
    const { status, body } = await create(labels)
    expect({ status, labels: body.labels }).toEqual({ status: 201, labels })
    expect((await api.client.get(`/checks/${body.id}`)).body.labels).toEqual(labels)
  })

  it.each<[string, unknown, string]>([
    ['thirty-three', manyLabels(33), 'labels must be an object of at most 32 labels'],
    ['null', null, 'labels cannot be null'],
    ['a list', ['a'], 'labels must be an object of at most 32 labels'],
    ['text', 'a=b', 'labels must be an object of at most 32 labels'],
    [
      'a name of 64 characters',
      { ['n'.repeat(64)]: '' },
      `labels.${'n'.repeat(64)} must have a name of up to 63 letters`,
    ],
    ['a prefix of 254 characters', { [`${'p'.repeat(254)}/n`]: '' }, 'must have a name of up to 63 letters'],
    ['a prefix with a capital letter', { 'Example.com/a': '' }, 'labels.Example.com/a must have a name of up to 63'],
    ['an empty name', { '': 'a' }, 'must have a name of up to 63'],
    ['a value of 64 characters', { a: 'v'.repeat(64) }, 'labels.a must be text of at most 63 letters'],
    ['a value with a space', { a: 'b c' }, 'labels.a must be text of at most 63 letters'],
    ['a number', { a: 1 }, 'labels.a must be text of at most 63 letters'],
    ['a value of null', { a: null }, 'labels.a must be text of at most 63 letters'],
  ])('cannot be %s', async (_, labels, error) => {
    const { status, body } = await create(labels)
    expect(status).toBe(400)
    expect(body.error).toContain(error)
    const { id } = (await create({ kept: 'yes' })).body
    const answer = await api.client.put(`/checks/${id}`, { labels })
    expect(answer).toMatchObject({ status: 400, body: { error: body.error } })
    expect((await api.client.get(`/checks/${id}`)).body.labels).toEqual({ kept: 'yes' })
  })

  it('cannot be __proto__, and each at fault is named', async () => {
    const text = `{"project_id":"${project}","name":"x","labels":{"__proto__":"a","b":"-","c":"d"}}`
    const { status, body } = await api.client.post('/checks', JSON.parse(text))
    expect(status).toBe(400)
    expect(body.details.map(({ path }: { path: string }) => path)).toEqual(['body.labels.__proto__', 'body.labels.b'])
  })

  it('stay in an update without them, and are replaced as a whole by an update with them', async () => {
    const { id } = (await create({ a: '1', b: '2' })).body
    const update = async (fields: object) => (await api.client.put(`/checks/${id}`, fields)).body.labels
    expect(await update({ name: 'Other' })).toEqual({ a: '1', b: '2' })
    expect(await update({ labels: { b: '3', c: '4' } })).toEqual({ b: '3', c: '4' })
    expect(await update({ labels: {} })).toEqual({})
  })

  it('are the same in another order: nothing changed', async () => {
    const { id, updated_at } = (await create({ a: '1', 'b.c/d': '2' })).body
    const { body } = await api.client.put(`/checks/${id}`, { labels: { 'b.c/d': '2', a: '1' } })
    expect(body.updated_at).toBe(updated_at)
    await api.client.put(`/checks/${id}`, { name: 'Renamed' })
    const { entries } = (await api.client.get(`/audit?target_id=${id}`)).body
    expect(entries[0]).toMatchObject({ action: 'check.changed', detail: { changed: ['name'] } })
  })

  it('are in lists', async () => {
    await create({ b: '2', a: '1' })
    const { checks } = (await api.client.get(`/checks?project_id=${project}`)).body
    expect(JSON.stringify(checks[0].labels)).toBe('{"a":"1","b":"2"}')
  })
})
