/** In place of the schedule of a source that is not there, or whose schedule cannot be read: nothing is expected then. */

/** Of sources that name none. */
export const DEFAULT_SOURCE_ZONE = 'Etc/UTC'
export const NO_SCHEDULE = { schedule: null, periodSeconds: null, timeZone: null }
