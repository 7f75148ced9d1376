import { describe, expect, it } from 'vitest'
import { getOrNull } from '../../../src/kubernetes/client.ts'
import { ApiError, isRejected, type TransportError } from '../../../src/kubernetes/errors.ts'

const rejection = (status: number, causes: { reason: string }[] = []) =>
  new ApiError({
    request: 'create secrets shop/prices',
    status,
    reason: 'Any',
    message: 'no',
    details: { causes },
    retryAfterSeconds: null,
  })

describe('a rejection', () => {
  it.each([
    ['that a person has to change', 400, true],
    ['for a missing right', 403, true],
    ['of a verb', 405, true],
    ['of an object that is too large', 413, true],
    ['of an invalid object', 422, true],
    ['of our credentials', 401, false],
    ['of an object that is not there', 404, false],
    ['of a version that is not the newest', 409, false],
    ['by a server that is busy', 429, false],
    ['by a server that fails', 500, false],
  ])('%s (%i) is repeated by a retry: %s', (_, status, expected) => {
    expect(isRejected(rejection(status))).toBe(expected)
  })

  it('in a namespace that is being deleted is none', () => {
    expect(isRejected(rejection(403, [{ reason: 'NamespaceTerminating' }]))).toBe(false)
    expect(isRejected(new Error('reset') as TransportError)).toBe(false)
  })
})

it('getOrNull() resolves with null where there is no object, and rejects as get() otherwise', async () => {
  const type = { group: '', version: 'v1', plural: 'secrets' }
  const read = (error: Error) =>
    getOrNull({ get: () => Promise.reject(error) }, type, { namespace: 'shop', name: 'prices' })
  expect(await read(rejection(404))).toBeNull()
  await expect(read(rejection(403))).rejects.toThrow('no')
})
