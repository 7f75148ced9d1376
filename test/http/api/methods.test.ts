/** Changes by PATCH and actions by POST, and the methods that stay beside them. */

import { beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../../src/http/api/routes.ts'
import { startTestApi } from '../../support/service.ts'
import { use } from '../../support/use.ts'

const api = use(startTestApi)

const post = async (path: string, json: object): Promise<Record<string, unknown>> =>
  (await api.client.post(path, json)).body
const SLACK = { kind: 'slack', config: { url: 'https://hooks.slack.com/services/T/B/x' }, events: ['check.down'] }

/** What is made, and what changes of it. */
const RESOURCES: [path: string, make: () => object, change: object][] = [
  ['/checks', () => ({ project_id: api.project, name: 'Backup', description: 'kept' }), { grace_seconds: 60 }],
  ['/channels', () => ({ ...SLACK, name: 'Shop' }), { name: 'Store' }],
  ['/projects', () => ({ name: 'Shop' }), { name: 'Store' }],
  ['/api-keys', () => ({ name: 'ci', scope: 'read' }), { name: 'cd' }],
  [
    '/users',
    () => ({ email: 'ann@example.com', password: 'correct horse battery', scope: 'read' }),
    { scope: 'write' },
  ],
]

describe.each(RESOURCES)('a change of one of %s', (path, make, change) => {
  let made: Record<string, unknown>
  beforeAll(async () => {
    const { key: _key, secret: _secret, ...rest } = await post(path, make())
    made = rest
  })
  const moves = { updated_at: expect.anything() }
  const wanted = () => ({ ...made, ...change, ...('updated_at' in made ? moves : {}) })

  it.each(['PATCH', 'PUT'])('by %s keeps the fields that are left out', async (method) => {
    const { status, body } = await api.client.call(method, `${path}/${made.id}`, { json: change })
    expect([status, body]).toEqual([200, wanted()])
    expect((await api.client.get(`${path}/${made.id}`)).body).toEqual(wanted())
  })
})

describe('a pause and a resume', () => {
  it('are no PUT', async () => {
    const { status, headers } = await api.client.call('PUT', `/checks/${'0'.repeat(36)}/pause`)
    expect([status, headers.get('allow')]).toEqual([405, 'PATCH, POST'])
  })
})

describe('the document', () => {
  it('has the documented method first, and the other one as the same', async () => {
    const { paths } = (await api.client.get('/openapi.json')).body
    for (const { id, path, method, sameAs } of ROUTES.filter((route) => route.sameAs !== undefined)) {
      const operations = Object.entries<{ operationId: string }>(paths[path])
      const [first] = operations.find(([, { operationId }]) => operationId === sameAs)!
      expect(paths[path][method.toLowerCase()]).toMatchObject({
        operationId: id,
        summary: `The same as ${first.toUpperCase()} ${path}`,
      })
    }
  })
})
