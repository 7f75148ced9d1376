/** What kept the embedded PostgreSQL from running. */

import { errorCode } from '../runtime/error-code.ts'
import { StartFault } from '../runtime/start-fault.ts'

export type FailureReason =
  | 'unsupported' // no PostgreSQL that runs here
  | 'not-writable' // the data folder cannot be made or written
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

/** Turns an error of the file system or of a program start into one about `dataDir`. Returns an EmbeddedPostgresError as it is. */
export function explainFolderError(error: unknown, dataDir: string): EmbeddedPostgresError {
  if (error instanceof EmbeddedPostgresError) return error
  const { syscall, path, message } = error as NodeJS.ErrnoException
  const code = errorCode(error)
  if (syscall?.startsWith('spawn'))
    return code === 'EACCES'
      ? closedToAccount(dataDir, `${path}: ${code}`)
      : new EmbeddedPostgresError(
          'unsupported',
          `the embedded PostgreSQL cannot run on this system (${path}: ${code}): set DATABASE_URL to a PostgreSQL of your own`,
          error,
        )
  const unusable = (reason: FailureReason, why: string) =>
    new EmbeddedPostgresError(reason, `data folder ${dataDir} ${why} set DATA_DIR to another folder`, error)
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return diskFull(dataDir, error)
    case 'EEXIST':
    case 'ENOTDIR':
      return unusable('not-writable', 'is not a folder: remove the file in its place, or')
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOENT': {
      const why = `is not writable for uid ${process.geteuid?.()} (${code})`
      return unusable('not-writable', `${why}: start as the account that owns it, or`)
    }
    default:
      return unusable('failed', `cannot be used (${message}):`)
  }
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

/** The program that failed, and what the message about it names. */
export interface FailureContext {
  readonly dataDir: string
  readonly program: string
  readonly port?: number
  readonly logFile?: string
}

/** Turns the last output of initdb or of the server (in English, because of LC_ALL=C) into one line. */
export function explainOutput(
  output: string,
  { dataDir, program, port, logFile }: FailureContext,
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
  if (process.geteuid?.() === 0 && /Permission denied|EACCES/.test(output)) return closedToAccount(dataDir, quoted)
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
