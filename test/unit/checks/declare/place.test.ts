import { describe, expect, it } from 'vitest'
import {
  isOfFormerNamespace,
  isOfPlace,
  originOf,
  type Place,
  updateOrigin,
} from '../../../../src/checks/declare/place.ts'
import type { StoredCheck } from '../../../../src/store/checks/checks.ts'
import { type CheckOrigin, NO_ORIGIN } from '../../../../src/store/checks/columns.ts'

const uids = (kubernetesNamespaceUid: string | null, kubernetesClusterUid: string | null) => ({
  kubernetesNamespaceUid,
  kubernetesClusterUid,
})
const placeOf = (namespaceUid: string | null, clusterUid: string | null, isFresh = false): Place => ({
  namespaceUid,
  clusterUid,
  isFresh,
})
const originAt = (namespaceUid: string | null, clusterUid: string | null): CheckOrigin => ({
  ...NO_ORIGIN,
  kubernetesAdopted: true,
  ...uids(namespaceUid, clusterUid),
})

describe('what is kept comes back', () => {
  it.each([
    ['in the same namespace', uids('n', 'c'), placeOf('n', 'c'), true],
    ['in another namespace of the same cluster: not', uids('n', 'c'), placeOf('m', 'c'), false],
    ['in another cluster, by its name', uids('n', 'c'), placeOf('m', 'd'), true],
    ['in a cluster that is not known: not', uids('n', 'c'), placeOf('m', null), false],
    ['from a cluster that was not known: not', uids('n', null), placeOf('m', 'd'), false],
    ['where neither namespace is known: not', uids(null, 'c'), placeOf(null, 'c'), false],
  ])('%s', (_, kept, place, isBack) => {
    expect(isOfPlace(kept, { revival: 'uid', place })).toBe(isBack)
    expect(isOfPlace(kept, { revival: 'name', place })).toBe(true)
  })

  it('where nothing is known of it, and not where nothing is known of the place', () => {
    expect(isOfPlace(null, { revival: 'uid', place: placeOf('n', 'c') })).toBe(true)
    expect(isOfPlace(uids('n', 'c'), { revival: 'uid' })).toBe(false)
  })
})

it('a check is of a former namespace where a fresh one has its name and another uid', () => {
  const isFormer = (origin: CheckOrigin | undefined, place?: Place) =>
    isOfFormerNamespace({ ...(origin && { origin }) } as StoredCheck, { revival: 'uid', ...(place && { place }) })
  expect(isFormer(originAt('n', 'c'), placeOf('m', 'c', true))).toBe(true)
  expect(isFormer(originAt('n', 'c'), placeOf('n', 'c', true))).toBe(false)
  expect(isFormer(originAt('n', 'c'), placeOf('m', 'c', false))).toBe(false)
  expect(isFormer(originAt('n', 'c'), placeOf(null, 'c', true))).toBe(false)
  expect(isFormer(originAt(null, 'c'), placeOf('m', 'c', true))).toBe(false)
  expect(isFormer(originAt('n', 'c'))).toBe(false)
  expect(isFormer(undefined, placeOf('m', 'c', true))).toBe(false)
})

describe('the origin of a check', () => {
  it('is the place of the resource that gets it', () => {
    expect(originOf({ place: placeOf('n', 'c') }, false)).toEqual({ kubernetesAdopted: false, ...uids('n', 'c') })
    expect(originOf({}, null)).toEqual(NO_ORIGIN)
  })

  const stored = originAt('n', 'c')
  it.each([
    ['stays where the place is another one', {}, placeOf('m', 'd'), stored],
    ['stays where the place is not known', {}, placeOf(null, 'd'), stored],
    ['is moved by the first reconcile of a resource', { isNew: true }, placeOf('m', 'd'), originAt('m', 'd')],
    ['is moved by a fresh place', {}, placeOf('m', 'd', true), originAt('m', 'd')],
    ['learns a cluster that was named anew', {}, placeOf('n', 'd'), originAt('n', 'd')],
    ['keeps its cluster where the place has none', {}, placeOf('n', null), stored],
  ])('%s', (_, more, place, origin) => {
    expect(updateOrigin(stored, { place, ...more })).toEqual(origin)
  })

  it('is learned where none was known', () => {
    const unknown = originAt(null, null)
    expect(updateOrigin(unknown, { place: placeOf('n', null) })).toEqual(originAt('n', null))
    expect(updateOrigin(unknown, { place: placeOf(null, 'd') })).toEqual(unknown)
  })
})
