import { describe, expect, it } from 'vitest'
import { getOrNull } from '../../../src/kubernetes/client.ts'
import { isRejected, readRejection, type TransportError } from '../../../src/kubernetes/errors.ts'
import { anApiError } from '../../support/builders.ts'
import { startCpuTimer } from '../../support/cpu-time.ts'

const rejection = (status: number, causes: { reason: string }[] = []) => anApiError(status, { details: { causes } })

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

describe('the message of an answer', () => {
  const URL = 'http://heartbeat.example.com/ping/03696c56-4b5d-4e1f-8a2b-0123456789ab'
  const messageOf = (request: string, message: string) =>
    readRejection(request, 500, JSON.stringify({ kind: 'Status', message }), undefined).message

  it.each([
    [`denied: ${URL}, as always`, 'denied: ***, as always'],
    [`data: {"HEARTBEAT_URL":"${URL}"}`, 'data: {"HEARTBEAT_URL":"***"}'],
    [`data: [${URL.replace('heartbeat.example.com', '[2001:db8::17]:8080')}]`, 'data: [***]'],
    [`HEARTBEAT_URL=${URL}/fail\nnext`, 'HEARTBEAT_URL=***\nnext'],
    [`data: '${Buffer.from(URL).toString('base64')}' is too long`, `data: '***' is too long`],
    [
      'failed calling webhook "x.example.com": Post "https://x.shop.svc:443/validate?timeout=10s": no endpoints',
      'failed calling webhook "x.example.com": Post "https://x.shop.svc:443/validate?timeout=10s": no endpoints',
    ],
  ])('about a Secret or ConfigMap quotes no address with an id: %j', (given, expected) => {
    for (const plural of ['secrets', 'configmaps']) expect(messageOf(`patch ${plural} shop/a`, given)).toBe(expected)
    expect(messageOf('patch heartbeatchecks.heartbeat-operator.io shop/secrets', given)).toBe(given)
  })

  it('is read in a time that grows with its length', () => {
    for (const text of ['http://', 'aHR0c', '03696c56-4b5d-4', '"', '[', '[1:', 'x']) {
      const message = text.repeat(1_000_000 / text.length)
      const used = startCpuTimer()
      messageOf('patch secrets shop/a', message)
      expect(used()).toBeLessThan(500)
    }
  })
})

it('getOrNull() resolves with null where there is no object, and rejects as get() otherwise', async () => {
  const type = { group: '', version: 'v1', plural: 'secrets' }
  const read = (error: Error) =>
    getOrNull({ get: () => Promise.reject(error) }, type, { namespace: 'shop', name: 'prices' })
  expect(await read(rejection(404))).toBeNull()
  await expect(read(rejection(403))).rejects.toThrow('no')
})
