/**
 * Warning Events of CronJobs. The API server keeps Events for an hour, so those of a fault that lasts are recorded again each half hour, and not
 * with each resync. A fault that was corrected and is there again is a new one.
 */

import type { Recorder } from '../../kubernetes/recorder.ts'
import type { Clock } from '../../runtime/clock.ts'
import { typeOf } from '../sources/source-kinds.ts'
import type { OptInSource, Warning } from './plan.ts'

export interface Warnings {
  /** Records those that were not found before, or half an hour ago. What is not found any more counts as corrected. */
  report(key: string, source: OptInSource, found: readonly Warning[]): void
  /** The CronJob is gone. */
  forget(key: string): void
}

export const REFRESH_MS = 1_800_000
/** Of one CronJob: more of them are forgotten, the oldest first. */
const MAX_KNOWN = 32

interface Known {
  /** The half hour in which it was recorded last. */
  period: number
  isCorrected: boolean
  /** How often it came back in this half hour. */
  returns: number
}

export function createWarnings(recorder: Pick<Recorder, 'record'>, clock: Pick<Clock, 'now'>): Warnings {
  const known = new Map<string, Map<string, Known>>()

  return {
    report(key, { metadata: { namespace, name, uid, resourceVersion } }, found) {
      const ofKey = known.get(key) ?? new Map<string, Known>()
      // Half hours begin at another time for each CronJob, so that thousands are not due at once.
      const period = Math.floor((clock.now() + spread(uid)) / REFRESH_MS)
      // A CronJob that was replaced by another of its name is warned again.
      const now = new Map(found.map((warning) => [`${warning.reason} ${uid} ${warning.note}`, warning]))
      for (const [fault, before] of ofKey) {
        if (now.has(fault)) continue
        before.isCorrected = true
        if (before.period !== period) ofKey.delete(fault)
      }
      const regarding = { ...typeOf('CronJob'), namespace, name, uid, resourceVersion }
      for (const [fault, { reason, note }] of now) {
        const before = ofKey.get(fault)
        const isSamePeriod = before?.period === period
        if (isSamePeriod && !before.isCorrected) continue
        const returns = isSamePeriod ? before.returns + 1 : 0
        ofKey.set(fault, { period, isCorrected: false, returns })
        // It makes the Event's name: the next leader does not repeat it.
        const id = `${fault} ${period} ${returns}`
        recorder.record(regarding, {
          type: 'Warning',
          reason,
          note,
          action: 'Watch',
          id,
          // What people know already waits behind what is new.
          ...(before === undefined || isSamePeriod ? {} : { isPatient: true }),
          onSettled(result) {
            if (result === 'lost') known.get(key)?.delete(fault)
          },
        })
      }
      while (ofKey.size > MAX_KNOWN) ofKey.delete(ofKey.keys().next().value!)
      if (ofKey.size === 0) known.delete(key)
      else known.set(key, ofKey)
    },
    forget: (key) => void known.delete(key),
  }
}

/** A time within the half hour, always the same for a uid. */
function spread(uid: string): number {
  let hash = 0
  for (const character of uid) hash = (hash * 31 + character.charCodeAt(0)) % REFRESH_MS
  return hash
}
