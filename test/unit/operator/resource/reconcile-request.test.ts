/** F3: the annotation that requests a reconcile, and how the status answers it. */

import { describe, expect, it } from 'vitest'
import type { HeartbeatCheckStatus } from '../../../../src/operator/heartbeat-check.ts'
import { handledRequest, hasRequest, requestOf } from '../../../../src/operator/resource/reconcile-request.ts'
import { aHeartbeatCheck } from '../../../support/builders.ts'

const NOON = Date.UTC(2026, 0, 1, 12)
const aCheck = (request: string | null, status: HeartbeatCheckStatus = {}) => {
  const asked = request === null ? {} : { 'heartbeat-operator.io/reconcile-requested-at': request }
  return aHeartbeatCheck({ metadata: { annotations: { other: 'x', ...asked } }, status })
}
const handled = { lastHandledReconcileTime: '2025-12-31T00:00:00Z', lastHandledReconcileRequest: 'a' }

describe('a request to reconcile', () => {
  it.each([
    ['is any value', 'now', {}, 'now'],
    ['may be empty', '', {}, ''],
    ['is another value than the last', 'b', handled, 'b'],
    ['has at most 64 characters in the status', 'x'.repeat(64), {}, 'x'.repeat(64)],
    [
      'is its hash there when it is longer',
      'x'.repeat(65),
      {},
      '9537c5fdf120482f7d58d25e9ed583f52c02b4e304ea814db1633ad565aed7e9',
    ],
  ])('%s', (_, request, status, stored) => {
    const check = aCheck(request, status)
    expect(hasRequest(check)).toBe(true)
    const answer = { lastHandledReconcileTime: '2026-01-01T12:00:00Z', lastHandledReconcileRequest: stored }
    expect(handledRequest(check, NOON + 999)).toEqual(answer)
    expect(hasRequest(aCheck(request, answer))).toBe(false)
  })

  it.each([
    ['the same value is none', 'a', handled, handled],
    ['the status stays when the annotation is removed', null, handled, handled],
    ['no annotation is none', null, {}, {}],
  ])('%s', (_, request, status, answer) => {
    const check = aCheck(request, status)
    expect(hasRequest(check)).toBe(false)
    expect(handledRequest(check, NOON)).toEqual(answer)
  })

  it('is null without the annotation, whatever others there are', () => {
    expect(requestOf(aCheck(null))).toBeNull()
    expect(requestOf({ ...aCheck(null), metadata: { name: 'x', uid: 'u', resourceVersion: '1' } })).toBeNull()
  })
})
