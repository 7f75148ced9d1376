/** What kept the embedded PostgreSQL from running; `reason` is for code, the message is for people. */

import { errorCode } from '../runtime/error-code.ts'
export type FailureReason =
  | 'unsupported' // no PostgreSQL build that runs here
  | 'not-writable' // the data folder cannot be made or written
  | 'not-ours' // the data folder holds something else, or belongs to another account
  | 'wrong-version'
  | 'in-use' // another live process of ours holds the data folder
  | 'port-taken'
  | 'memory-in-use' // processes of a dead postmaster have not ended yet
  | 'disk-full'
  | 'failed' // anything else; the message quotes the server

/** The message is one line that says what is wrong, where, and what to do; the caller prints it and exits with status 2. */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError'
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.reason = reason
  }
}

/** Says of a file system error what it means for somebody who chose `dataDir`. Errors of ours pass through unchanged. */
export function explainFolderError(error: unknown, dataDir: string): EmbeddedPostgresError {
  if (error instanceof EmbeddedPostgresError) return error
  const code = errorCode(error)
  if (error instanceof Error && 'path' in error && String((error as NodeJS.ErrnoException).syscall).startsWith('spawn'))
    return new EmbeddedPostgresError(
      'unsupported',
      `the embedded PostgreSQL cannot run on this system (${error.path}: ${code}): set DATABASE_URL to a PostgreSQL of your own`,
      error,
    )
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFull(dataDir, error)
    case 'EEXIST':
    case 'ENOTDIR':
      return new EmbeddedPostgresError(
        'not-writable',
        `data folder ${dataDir} is not a folder: remove the file in its place, or set DATA_DIR to another folder`,
        error,
      )
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOENT':
      return new EmbeddedPostgresError(
        'not-writable',
        process.geteuid?.() === 0
          ? `data folder ${dataDir} is not writable even for root (${code}; capabilities were taken away, or the disk does ` +
              'not obey root): start as an ordinary user, or set DATA_DIR to another folder'
          : `data folder ${dataDir} is not writable for uid ${process.geteuid?.()} (${code}): ` +
              'give that account the folder, or set DATA_DIR to another one',
        error,
      )
    default:
      return new EmbeddedPostgresError(
        'failed',
        `data folder ${dataDir} cannot be used (${error instanceof Error ? error.message : String(error)}): ` +
          'set DATA_DIR to another folder',
        error,
      )
  }
}

export function diskFull(dataDir: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'disk-full',
    `no space left on the disk that holds data folder ${dataDir}: free some space, or set DATA_DIR to a folder elsewhere`,
    cause,
  )
}

/** Where a failed server or tool ran, for the message about it. */
export type Place = { dataDir: string; program: string; port?: number; logFile?: string }

/** Turns what initdb or the server printed before it gave up (English: we run them with LC_ALL=C) into one line. */
export function explainOutput(output: string, place: Place): EmbeddedPostgresError {
  const { dataDir, program, port, logFile } = place
  const quoted = quoteFailure(output)
  const shared = output.match(/error while loading shared libraries: (\S+?):/)
  if (shared !== null)
    return new EmbeddedPostgresError(
      'unsupported',
      `the embedded PostgreSQL cannot run on this system (${shared[1]} is missing): install that library, or set DATABASE_URL`,
    )
  if (/Address already in use/.test(output))
    return new EmbeddedPostgresError(
      'port-taken',
      `the embedded PostgreSQL in ${dataDir} cannot listen on 127.0.0.1:${port}: the port is in use; stop its user or choose another port`,
    )
  if (/is still in use|is in use by another|shared memory block/.test(output))
    return new EmbeddedPostgresError(
      'memory-in-use',
      `processes of an earlier PostgreSQL still use data folder ${dataDir}: stop them, then start again (${quoted})`,
    )
  const fullShm = /shared memory.*No space left on device/.test(output)
  if (!fullShm && /No space left on device|Disk quota exceeded/.test(output)) return diskFull(dataDir)
  const where = logFile === undefined ? '' : `; its log is ${logFile}`
  return new EmbeddedPostgresError('failed', `${program} failed in data folder ${dataDir}: ${quoted}${where}`)
}

/** The line that says most: the last complaint, else the last line, without the log's time and process id. */
function quoteFailure(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  const complaint = lines.findLast((line) => /\b(FATAL|PANIC|ERROR|error):|could not/.test(line))
  const line = complaint ?? lines.at(-1) ?? 'it printed nothing'
  return line.replace(/^[\d-]+ [\d:.]+ \w+ \[\d+\] /, '').slice(0, 400)
}
