import type { CheckDeclaration } from '../heartbeat-check.ts'

/** Names in an Event, each of at most 317 of its 1,024 bytes. */
const NAMES = 2

/** The Warning about a resource with more labels than a check can have, once for the same labels; null: it has not. */
export function describeDroppedLabels({ labels, droppedLabels: dropped }: CheckDeclaration) {
  if (dropped.length === 0) return null
  const others = dropped.length - NAMES
  const names = `${dropped.slice(0, NAMES).join(', ')}${others > 0 ? ` and ${others} more` : ''}`
  const note = `a check has at most ${Object.keys(labels).length} labels, the first by name; this one lacks ${names}: remove labels of the resource that events, alerts and metrics of the check do not need`
  return { reason: 'LabelsDropped', note, id: `LabelsDropped ${note}` }
}
