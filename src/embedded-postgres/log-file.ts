import { open, statfs } from 'node:fs/promises'

/** Above this, a start begins the log anew: it is for looking into the last trouble, not a record. */
const MAX_LOG_BYTES = 4 * 1024 * 1024
const MAX_QUOTED_BYTES = 64 * 1024

/** The server's log, open for appending. */
export type LogFile = AsyncDisposable & {
  fd: number
  /** What was written since the log was opened; of much, the end. */
  readNew(): Promise<string>
}

export async function openLog(file: string): Promise<LogFile> {
  const handle = await open(file, 'a+', 0o600)
  let { size } = await handle.stat()
  if (size > MAX_LOG_BYTES) {
    await handle.truncate(0)
    size = 0
  }
  return {
    fd: handle.fd,
    readNew: async () => {
      const end = (await handle.stat()).size
      const length = Math.min(end - size, MAX_QUOTED_BYTES)
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, end - length)
      return buffer.toString('utf8', 0, bytesRead)
    },
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

/** Has the disk under `path` less room left than PostgreSQL needs to start (one log segment)? */
export async function hasNoSpace(path: string): Promise<boolean> {
  const { bavail, bsize } = await statfs(path)
  return bavail * bsize < 1024 * 1024
}
