import { describe, expect, it } from 'vitest'
import type { HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'
import { type Claims, ownershipOf } from '../../../../src/operator/ownership/ownership.ts'
import { aHeartbeatCheck } from '../../../support/builders.ts'

const OURS = '11111111-1111-4111-8111-111111111111'
const OTHER = '22222222-2222-4222-8222-222222222222'
const THIRD = '33333333-3333-4333-8333-333333333333'

function resource(installation?: string, takeOver?: string): HeartbeatCheck {
  const annotations = takeOver === undefined ? {} : { 'heartbeat-operator.io/take-over': takeOver }
  return aHeartbeatCheck({ metadata: { annotations }, ...(installation && { status: { installation } }) })
}

const claims = (changes: Partial<Claims> = {}): Claims => ({
  installation: OURS,
  takeOver: null,
  takenOver: new Set(),
  ...changes,
})

describe('a resource belongs', () => {
  it.each([
    ['to us without a status', resource(), {}],
    ['to us with a status from before installations had ids', { ...resource(), status: { checkId: 'x' } }, {}],
    ['to us with our id, as after a restore of our database', resource(OURS), {}],
    ['to us with our id, also when it is annotated with our id', resource(OURS, OURS), {}],
    ['to us with our id, also when TAKE_OVER names it', resource(OURS), { takeOver: OURS }],
  ])('%s', (_, object, changes) => {
    expect(ownershipOf(object, claims(changes))).toEqual({ kind: 'ours' })
  })

  it.each([
    ['with the id of another', resource(OTHER), {}],
    ['with an annotation that names a third', resource(OTHER, THIRD), {}],
    ['with an annotation that names us: it stayed after a takeover from us', resource(OTHER, OURS), {}],
    ['with an empty annotation', resource(OTHER, ''), {}],
    ['when TAKE_OVER names a third', resource(OTHER), { takeOver: THIRD }],
    ['when TAKE_OVER has taken it once', resource(OTHER), { takeOver: OTHER, takenOver: new Set(['u1']) }],
  ])('to the other %s', (_, object, changes) => {
    expect(ownershipOf(object, claims(changes))).toEqual({ kind: 'foreign', installation: OTHER })
  })

  it.each([
    ['its annotation names its owner', resource(OTHER, OTHER), {}],
    ['its annotation does, in other letters', resource(OTHER, ` ${OTHER.toUpperCase()}\n`), {}],
    ['TAKE_OVER names its owner', resource(OTHER), { takeOver: OTHER }],
    ['an annotation names its owner after TAKE_OVER', resource(OTHER, OTHER), { takenOver: new Set(['u1']) }],
    ['TAKE_OVER has taken another resource', resource(OTHER), { takeOver: OTHER, takenOver: new Set(['u2']) }],
  ])('to us from now on when %s', (_, object, changes) => {
    expect(ownershipOf(object, claims(changes))).toEqual({ kind: 'takeover', from: OTHER })
  })
})
