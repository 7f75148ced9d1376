/** The folder cannot be used: another process uses it. */
export class SpoolRejected extends Error {
  override readonly name = 'SpoolRejected'
}

/** There is no room: by `maxBytes`, or on the disk. Nothing of the call was stored; there may be room later. */
export class SpoolFull extends Error {
  override readonly name = 'SpoolFull'
}

/** A write failed or the spool is closed: it accepts nothing until it is opened anew. */
export class SpoolBroken extends Error {
  override readonly name = 'SpoolBroken'
}

/** What the disk holds of a file is unknown: Linux marks the pages of a failed fsync as written, so that the next one would succeed. */
export class SyncFailed extends Error {
  override readonly name = 'SyncFailed'
}
