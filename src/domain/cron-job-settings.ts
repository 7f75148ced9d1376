/** What the configuration says of CronJobs (docs/use/cronjobs.md). */

export interface CronJobSettings {
  /**
   * `labelled`: those with the label, or in a Namespace with it; `all`: every one that no label excludes; `none`: no
   * CronJob, Job or pod is read, and no right to read them is needed.
   */
  readonly watch: 'labelled' | 'all' | 'none'
  /** The zone of the schedules of CronJobs without `spec.timeZone`: that of their kube-controller-manager. */
  readonly timeZone: string
  /** `failed`: the last lines of the container that failed are part of the reason. */
  readonly logs: 'off' | 'failed'
}

export const CRONJOBS_OFF: CronJobSettings = { watch: 'none', timeZone: 'Etc/UTC', logs: 'off' }
