/** What a check that follows a CronJob takes where its HeartbeatCheck does not say it (cronjobs design, section 3). */

export const FOLLOWED_DEFAULTS = { graceSeconds: 300, maxRuntimeSeconds: 43_200, beyondDeadlineSeconds: 60 } as const

/** Where its longest run time is set: in the HeartbeatCheck, by activeDeadlineSeconds of the CronJob, or nowhere. */
export type LimitFrom = 'resource' | 'deadline' | 'default'

/** The same in words for people, as they are stored with the check; of a field that is copied from an annotation they name that. */
export const LIMIT_WORDS: Readonly<Record<LimitFrom, string>> = {
  resource: 'spec.maxRuntimeSeconds of its HeartbeatCheck',
  deadline: `activeDeadlineSeconds of the Job and ${FOLLOWED_DEFAULTS.beyondDeadlineSeconds} s`,
  default: 'the default',
}
