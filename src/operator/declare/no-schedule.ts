/** In place of a schedule that is not known: a check has some schedule, and while it is paused nothing is expected by it. */

import type { StoredSpec } from '../../store/checks/columns.ts'

/** Of sources that name none. */
export const DEFAULT_SOURCE_ZONE = 'Etc/UTC'
export const NO_SCHEDULE = { schedule: '@yearly', periodSeconds: null, timeZone: DEFAULT_SOURCE_ZONE }

/** Of a check that follows a source which could not be read. The source may have this schedule as well. */
export function mayBeNoSchedule({ jobArea, schedule, timeZone }: StoredSpec): boolean {
  return jobArea != null && schedule === NO_SCHEDULE.schedule && timeZone === NO_SCHEDULE.timeZone
}
