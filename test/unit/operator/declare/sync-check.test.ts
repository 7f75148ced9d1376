import { expect, it } from 'vitest'
import { describeDroppedLabels, type ResolvedDeclaration } from '../../../../src/operator/declare/sync-check.ts'

const lacks = (...droppedLabels: string[]) =>
  describeDroppedLabels({ labels: { a: '1', b: '2' }, droppedLabels } as unknown as ResolvedDeclaration)

it('F9: warns of the labels that a check lacks, under an id that each reconcile and the next leader give it too', () => {
  const note =
    'a check has at most 2 labels, the first by name; this one lacks c: remove labels of the resource that events, alerts and metrics of the check do not need'
  expect(lacks('c')).toEqual({ reason: 'LabelsDropped', note, id: `LabelsDropped ${note}` })
})

it('F9: names two of many, so that the Event has room for them', () => {
  const names = ['c', 'd', 'e'].map((letter) => `${letter.repeat(253)}/${letter.repeat(63)}`)
  const { note } = lacks(...names)!
  expect(note).toContain(`lacks ${names[0]}, ${names[1]} and 1 more:`)
  expect(note.length).toBeLessThan(1_024)
})

it('F9: warns of nothing where the check has all labels', () => {
  expect(lacks()).toBeNull()
})
