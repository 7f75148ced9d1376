/** What kept the embedded PostgreSQL from running. */

import { errorCode } from '../runtime/error-code.ts'
import { StartFault } from '../runtime/start-fault.ts'

export type FailureReason =
  | 'unsupported' // no PostgreSQL that runs here
  | 'unusable' // the data folder cannot be made or written, or its server not be used
  | 'not-ours' // the data folder holds something else
  | 'wrong-version'
  | 'in-use' // another process uses the data folder
  | 'port-taken'
  | 'memory-in-use' // processes of a dead postmaster have not ended yet
  | 'disk-full'
  | 'failed' // anything else; the message quotes the server

/** The message is one line for the user: what is wrong, where, and what to do. `reason` is for code. */
export class EmbeddedPostgresError extends StartFault {
  override readonly name = 'EmbeddedPostgresError'
  readonly reason: FailureReason

  constructor(reason: FailureReason, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}

const INVALID_PASSWORD = '28P01'

/**
 * Turns an error of the file system, of a program start or of the server into one about `dataDir`. Returns an
 * EmbeddedPostgresError as it is.
 */
export function explainError(error: unknown, dataDir: string): EmbeddedPostgresError {
  if (error instanceof EmbeddedPostgresError) return error
  const { syscall, path, message } = error as NodeJS.ErrnoException
  const code = errorCode(error) ?? ''
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFull(dataDir, error)
  if (code === INVALID_PASSWORD)
    return new EmbeddedPostgresError(
      'not-ours',
      `the password in ${dataDir}/postgres-password is not the one of the database beside it: ` +
        'restore that file, or set DATA_DIR to another folder',
      error,
    )
  if (syscall?.startsWith('spawn'))
    return code === 'EACCES'
      ? closedToAccount(dataDir, `${path}: ${code}`)
      : new EmbeddedPostgresError(
          'unsupported',
          `the embedded PostgreSQL of data folder ${dataDir} cannot run on this system (${path}: ${code}): ` +
            'set DATABASE_URL to a PostgreSQL of your own',
          error,
        )
  let why = `cannot be used (${message}; the log of its server is ${dataDir}/postgres.log):`
  if (['EEXIST', 'ENOTDIR'].includes(code)) why = 'is not a folder: remove the file in its place, or'
  if (['EACCES', 'EPERM', 'EROFS', 'ENOENT'].includes(code))
    why = `is not writable for uid ${process.geteuid?.()} (${code}): start as the account that owns it, or`
  return new EmbeddedPostgresError('unusable', `data folder ${dataDir} ${why} set DATA_DIR to another folder`, error)
}

export function diskFull(dataDir: string, cause?: unknown): EmbeddedPostgresError {
  const message = `no space left on the disk that holds data folder ${dataDir}: free some space, or set DATA_DIR to a folder elsewhere`
  return new EmbeddedPostgresError('disk-full', message, cause)
}

/** Of the programs, too: root's own home is closed to the account. */
function closedToAccount(dataDir: string, quoted: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    'unsupported',
    `the account that PostgreSQL runs as, which is never root, cannot reach its programs or data folder ${dataDir} (${quoted}): ` +
      'make the folders above them passable (chmod a+x), start as an ordinary user, or set DATABASE_URL',
  )
}

/** Turns the last output of initdb or of the server (in English, because of LC_ALL=C) into one line. */
export function explainOutput(
  output: string,
  { dataDir, program, port, logFile }: { dataDir: string; program: string; port?: number; logFile?: string },
): EmbeddedPostgresError {
  const quoted = quoteFailure(output)
  const library = /(?:error while loading shared libraries|Library not loaded): (\S+?):?\s/.exec(output)?.[1]
  if (library !== undefined)
    return new EmbeddedPostgresError(
      'unsupported',
      `the embedded PostgreSQL of data folder ${dataDir} cannot run (${library} is missing): ` +
        'run "npm rebuild --ignore-scripts=false" where npm runs no install scripts, else install that library, or set DATABASE_URL',
    )
  const holder = /lock file "postmaster.pid" already exists[\s\S]*\(PID (\d+)\)/.exec(output)?.[1]
  if (holder !== undefined)
    return new EmbeddedPostgresError(
      'in-use',
      `data folder ${dataDir} is in use by process ${holder}: stop it (when it is no PostgreSQL, remove ` +
        `${dataDir}/postgres/postmaster.pid), or set DATA_DIR to another folder`,
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
  // Shared memory has its own file system (/dev/shm); the server's own words are the better message about it.
  const isMemory = /shared memory.*No space left on device/.test(output)
  if (!isMemory && /No space left on device|Disk quota exceeded/.test(output)) return diskFull(dataDir)
  if (process.geteuid?.() === 0 && /Permission denied/.test(output)) return closedToAccount(dataDir, quoted)
  const where = logFile === undefined ? '' : `; its log is ${logFile}`
  return new EmbeddedPostgresError('failed', `${program} failed in data folder ${dataDir}: ${quoted}${where}`)
}

/** The last line that complains, else the last line, without the time and process id of the log. */
function quoteFailure(output: string): string {
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const complaint = lines.findLast((line) => /\b(FATAL|PANIC|ERROR|error):|could not/.test(line))
  const line = complaint ?? lines.at(-1) ?? 'it printed nothing'
  return line
    .replace(/^[\d-]+ [\d:.]+ \w+ \[\d+\] /, '')
    .trim()
    .slice(0, 400)
}
