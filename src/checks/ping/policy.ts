/**
 * Whether the next group is committed optimistically or with row locks. An optimistic commit of a stale row costs a round trip more. Where
 * replicas share the pings of a check most cached rows are stale: after each conflict twice as many groups are locked.
 */

export interface CommitPolicy {
  /** Groups to lock before the next optimistic one. */
  readonly groupsToLock: number
  /** What `groupsToLock` becomes after the next conflict. */
  readonly backOff: number
}

const MAX_BACK_OFF = 512

export const OPTIMISTIC: CommitPolicy = { groupsToLock: 0, backOff: 1 }

/** The policy after a group that was locked, saved optimistically, or found stale in part. The stale part is the next group. */
export function nextPolicy({ groupsToLock, backOff }: CommitPolicy, last: 'locked' | 'saved' | 'stale'): CommitPolicy {
  switch (last) {
    case 'locked':
      return { groupsToLock: Math.max(0, groupsToLock - 1), backOff }
    case 'saved':
      return OPTIMISTIC
    case 'stale':
      return { groupsToLock: backOff, backOff: Math.min(MAX_BACK_OFF, backOff * 2) }
  }
}
