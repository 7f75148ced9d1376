/** The folder cannot be used: held by another process, of another version, or with files that do not belong together. */
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

/** A stored record cannot be read. The next `openSpool` keeps the damaged part aside. */
export class SpoolDamaged extends Error {
  override readonly name = 'SpoolDamaged'
}

/** What the disk holds of a file is unknown: Linux marks the pages of a failed fsync as written, so that the next one would succeed. */
export class SyncFailed extends Error {
  override readonly name = 'SyncFailed'
}
