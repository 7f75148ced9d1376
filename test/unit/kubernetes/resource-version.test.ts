import { describe, expect, it } from 'vitest'
import { compareVersions, isNewer } from '../../../src/kubernetes/resource-version.ts'

describe('versions', () => {
  it.each([
    ['9', '10', -1],
    ['10', '9', 1],
    ['10', '10', 0],
    ['123', '124', -1],
    // One apart, beyond what a number can tell apart.
    ['9007199254740992', '9007199254740993', -1],
    ['18446744073709551615', '9007199254740993', 1],
  ])('%s and %s are compared as numbers', (a, b, expected) => {
    expect(Math.sign(compareVersions(a, b)!)).toBe(expected)
    expect(Math.sign(compareVersions(b, a)!) + expected).toBe(0)
    expect(isNewer(a, b)).toBe(expected > 0)
  })

  it.each([
    ['x', '10'],
    ['10', ''],
    ['010', '10'],
    ['-1', '10'],
    ['1.5', '2'],
  ])('%j and %j cannot be compared', (a, b) => {
    expect(compareVersions(a, b)).toBeNull()
    expect([isNewer(a, b), isNewer(b, a)]).toEqual([false, false])
  })

  it('versions that are not numbers are equal or not comparable', () => {
    expect(compareVersions('x', 'x')).toBe(0)
  })
})
