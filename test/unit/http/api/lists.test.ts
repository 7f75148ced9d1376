import { expect, it } from 'vitest'
import { ROUTES } from '../../../../src/http/api/routes.ts'

it('H1: every list is sent in pieces, and every read with query parameters is a list', () => {
  const lists = ROUTES.filter(({ method, endpoint: { query } }) => method === 'GET' && query !== undefined)
  expect(lists.length).toBeGreaterThan(8)
  for (const { path, endpoint } of lists) {
    expect([path, Object.keys(endpoint.query!.shape)]).toEqual([path, expect.arrayContaining(['limit', 'cursor'])])
    expect([path, endpoint.handle.constructor.name]).toEqual([path, 'AsyncGeneratorFunction'])
  }
})
