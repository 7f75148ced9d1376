/** What a person has to correct before a resource can be brought in line: a retry alone does not help. */
export class StalledResource<Reason extends string> extends Error {
  readonly reason: Reason
  /** What is wrong is in the source that the resource follows. */
  readonly isOfSource: boolean

  constructor(reason: Reason, message: string, isOfSource = false) {
    super(message)
    this.reason = reason
    this.isOfSource = isOfSource
  }
}

/**
 * How long a resource waits that stalled at `since`. No watch reports that a Secret or a project is there now, and the
 * person who made it waits for the effect. So a resource that stalled a moment ago is retried soon, and one that
 * stalled long ago twice in a resync.
 */
export function stalledRetryMs(since: string | undefined, now: number, resyncMs: number): number {
  const stalledMs = since === undefined ? 0 : now - Date.parse(since)
  return Math.min(resyncMs / 2, Math.max(resyncMs / 60, stalledMs / 2))
}
