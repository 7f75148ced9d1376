import { expect, it } from 'vitest'
import { createDroppedLabels } from '../../../../src/operator/declare/dropped-labels.ts'
import type { CheckDeclaration, HeartbeatCheck } from '../../../../src/operator/heartbeat-check.ts'

const OBJECT = { metadata: { name: 'nightly', namespace: 'shop' } } as HeartbeatCheck
const KEY = 'shop/nightly'
const lacks = (...droppedLabels: string[]) =>
  ({ labels: { a: '1', b: '2' }, droppedLabels }) as unknown as CheckDeclaration

function create() {
  const recorded: { type: string; reason: string; note: string; id?: string }[] = []
  const dropped = createDroppedLabels((_object, type, event) => recorded.push({ type, ...event }))
  return { recorded, warn: (declaration: CheckDeclaration) => dropped.warn(KEY, OBJECT, declaration), dropped }
}

it('F9: warns of the labels that a check lacks, under a name that the next leader gives it too', () => {
  const { recorded, warn } = create()
  warn(lacks('c'))
  const note =
    'a check has at most 2 labels, the first by name; this one lacks c: remove labels of the resource that events, alerts and metrics of the check do not need'
  expect(recorded).toEqual([{ type: 'Warning', reason: 'LabelsDropped', note, id: `LabelsDropped ${note}` }])
})

it('F9: names two of many, so that the Event has room for them', () => {
  const { recorded, warn } = create()
  const names = ['c', 'd', 'e'].map((letter) => `${letter.repeat(253)}/${letter.repeat(63)}`)
  warn(lacks(...names))
  expect(recorded[0]!.note).toContain(`lacks ${names[0]}, ${names[1]} and 1 more:`)
  expect(recorded[0]!.note.length).toBeLessThan(1_024)
})

it('F9: warns once of the same labels, and again of others, after all fitted, and of a new resource', () => {
  const { recorded, warn, dropped } = create()
  const warnings = (declaration: CheckDeclaration) => {
    warn(declaration)
    return recorded.splice(0).length
  }
  expect([warnings(lacks('c')), warnings(lacks('c'))]).toEqual([1, 0])
  expect([warnings(lacks('c', 'd')), warnings(lacks('c', 'd'))]).toEqual([1, 0])
  expect([warnings(lacks()), warnings(lacks('c', 'd'))]).toEqual([0, 1])
  dropped.forget(KEY)
  expect(warnings(lacks('c', 'd'))).toBe(1)
})
