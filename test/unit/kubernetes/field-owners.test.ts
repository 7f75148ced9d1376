/** Owners of fields, handed over to a manager of another name. */

import { expect, it } from 'vitest'
import { handOver } from '../../../src/kubernetes/field-owners.ts'
import type { FieldsOwner } from '../../../src/kubernetes/objects.ts'

const owner = (manager: string, fieldsV1: object, more: Partial<FieldsOwner> = {}): FieldsOwner => ({
  manager,
  operation: 'Update',
  apiVersion: 'example.com/v1',
  fieldsV1,
  ...more,
})
const STATUS = { subresource: 'status' } as const
const TO = { from: 'old', to: 'new', apiVersion: 'example.com/v1' } as const

it('moves all fields of one endpoint to the new manager, under the version that it writes', () => {
  const owners = [
    owner('them', { 'f:spec': {} }),
    owner('old', { 'f:status': { '.': {}, 'f:a': {} } }, { ...STATUS, apiVersion: 'example.com/v1alpha1' }),
    owner('old', { 'f:metadata': {} }),
  ]
  expect(handOver(owners, { ...TO, ...STATUS })).toEqual([
    owners[0],
    owners[2],
    owner('new', { 'f:status': { '.': {}, 'f:a': {} } }, STATUS),
  ])
})

it('merges them into what the new manager owns already', () => {
  const owners = [
    owner('old', { 'f:status': { '.': {}, 'f:a': {}, 'f:b': { 'f:c': {} } } }, STATUS),
    owner('old', { 'f:status': { 'f:d': {} } }, { ...STATUS, apiVersion: 'example.com/v1alpha1' }),
    owner('new', { 'f:status': { 'f:b': { 'f:e': {} } } }, { ...STATUS, time: '2026-01-01T00:00:00Z' }),
  ]
  expect(handOver(owners, { ...TO, ...STATUS })).toEqual([
    owner(
      'new',
      { 'f:status': { '.': {}, 'f:a': {}, 'f:b': { 'f:c': {}, 'f:e': {} }, 'f:d': {} } },
      { ...STATUS, time: '2026-01-01T00:00:00Z' },
    ),
  ])
})

const PATH = ['f:metadata', 'f:finalizers', 'v:"ours"']

it('moves a single field, and the list around it with the last one in it', () => {
  const alone = [owner('old', { 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"ours"': {} } } })]
  const moved = owner('new', { 'f:metadata': { 'f:finalizers': { 'v:"ours"': {} } } })
  expect(handOver(alone, { ...TO, path: PATH })).toEqual([moved])
  const among = [
    owner('old', {
      'f:metadata': { 'f:finalizers': { '.': {}, 'v:"ours"': {}, 'v:"theirs"': {} }, 'f:labels': { 'f:a': {} } },
    }),
  ]
  expect(handOver(among, { ...TO, path: PATH })).toEqual([
    owner('old', { 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"theirs"': {} }, 'f:labels': { 'f:a': {} } } }),
    moved,
  ])
})

it.each([
  ['no owner', []],
  ['another manager', [owner('older', { 'f:status': {} }, STATUS)]],
  ['what the manager applied', [owner('old', { 'f:status': {} }, { ...STATUS, operation: 'Apply' })]],
  ['another endpoint', [owner('old', { 'f:status': {} })]],
])('leaves %s as it is', (_, owners) => {
  expect(handOver(owners, { ...TO, ...STATUS })).toBe(owners)
})

it('leaves a manager that does not own the field', () => {
  const owners = [owner('old', { 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"theirs"': {} } } }), owner('old', {})]
  expect(handOver(owners, { ...TO, path: PATH })).toBe(owners)
})
