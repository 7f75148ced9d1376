/** Warns of a resource with more labels than a check can have: once for the same labels, not again with each resync. */

import type { CheckDeclaration, HeartbeatCheck } from '../heartbeat-check.ts'
import type { Reporter } from '../status/report.ts'

export interface DroppedLabels {
  /** Records a Warning, if the declaration lacks labels of the resource and did not lack the same before. */
  warn(key: string, object: HeartbeatCheck, declaration: CheckDeclaration): void
  /** The resource is gone. */
  forget(key: string): void
}

/** Names in an Event, each of at most 317 of its 1,024 bytes. */
const NAMES = 2

export function createDroppedLabels(recordEvent: Reporter['recordEvent']): DroppedLabels {
  const warned = new Map<string, string>()
  return {
    warn(key, object, { labels, droppedLabels }) {
      if (droppedLabels.length === 0) return void warned.delete(key)
      const note = describe(Object.keys(labels).length, droppedLabels)
      if (warned.get(key) === note) return
      warned.set(key, note)
      // The id makes the Event's name: the next leader does not repeat it.
      recordEvent(object, 'Warning', { reason: 'LabelsDropped', note, id: `LabelsDropped ${note}` })
    },
    forget: (key) => void warned.delete(key),
  }
}

function describe(most: number, dropped: readonly string[]): string {
  const others = dropped.length - NAMES
  const names = `${dropped.slice(0, NAMES).join(', ')}${others > 0 ? ` and ${others} more` : ''}`
  return `a check has at most ${most} labels, the first by name; this one lacks ${names}: remove labels of the resource that events, alerts and metrics of the check do not need`
}
