/**
 * The account that PostgreSQL runs as. PostgreSQL does not run as root, so a service that runs as root starts it under another
 * account: the owner of an existing cluster, else `postgres`, else `nobody`.
 */

import { chown, lchown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../runtime/error-code.ts'
import type { Binaries } from './binaries.ts'
import { EmbeddedPostgresError } from './failure.ts'
import { runProgram } from './processes.ts'

/** A program with its arguments, and the ids to start it with. */
export interface Command {
  readonly file: string
  readonly args: readonly string[]
  readonly uid?: number
  readonly gid?: number
}

/** How the account runs a program. */
export type Account = (file: string, args: readonly string[]) => Command

interface Ids {
  readonly uid: number
  readonly gid: number
}

/**
 * Chooses the account for `folder`: an existing cluster, or the staging folder of a new one. As root, also gives the folder and
 * its files to the account. Throws EmbeddedPostgresError `unsupported` when no account can reach them.
 */
export async function chooseAccount(folder: string, binaries: Binaries, dataDir: string): Promise<Account> {
  if (process.geteuid?.() !== 0) return (file, args) => ({ file, args })
  const ids = await chooseIds(folder)
  await giveFolder(folder, ids)
  const plain: Account = (file, args) => ({ file, args, ...ids })
  for (const account of [plain, withOverride(ids)]) if (await canReach(account, binaries, folder)) return account
  throw new EmbeddedPostgresError(
    'unsupported',
    `PostgreSQL does not run as root, and uid ${ids.uid} can reach neither ${binaries.postgres} nor data folder ${dataDir}: ` +
      'make their parent folders passable (chmod a+x), install setpriv, start as an ordinary user, or set DATABASE_URL',
  )
}

async function chooseIds(folder: string): Promise<Ids> {
  const { uid, gid } = await stat(folder)
  if (uid !== 0) return { uid, gid }
  for (const name of ['postgres', 'nobody']) {
    const [uids, gids] = await Promise.all([runProgram('id', ['-u', name]), runProgram('id', ['-g', name])])
    if (uids.ok && gids.ok) return { uid: Number(uids.output), gid: Number(gids.output) }
  }
  throw new EmbeddedPostgresError(
    'unsupported',
    'PostgreSQL does not run as root, and there is no account "postgres" or "nobody": ' +
      'make one (useradd postgres), start as an ordinary user, or set DATABASE_URL',
  )
}

/** For a cluster that root has copied. Does not follow links. */
async function giveFolder(folder: string, { uid, gid }: Ids): Promise<void> {
  if ((await stat(folder)).uid === uid) return
  for (const entry of await readdir(folder, { recursive: true })) await lchown(join(folder, entry), uid, gid)
  // The folder itself comes last: when this is interrupted, the next start does it again.
  await chown(folder, uid, gid)
}

/**
 * The account with one capability, for programs or folders that are closed to it (root's home, `mktemp -d`). initdb and postgres
 * look at their own program with access(2), which ignores the capabilities of ordinary accounts without `no_setuid_fixup`.
 */
function withOverride({ uid, gid }: Ids): Account {
  return (file, args) => ({
    file: 'setpriv',
    args: [
      ...[`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs'],
      ...['--inh-caps=-all,+dac_override', '--ambient-caps=-all,+dac_override'],
      ...['--securebits=+no_setuid_fixup', '--', file, ...args],
    ],
  })
}

/** Tries it instead of reading modes: access lists, mounts and containers count too. */
async function canReach(account: Account, binaries: Binaries, folder: string): Promise<boolean> {
  const script = 'test -x "$1" && test -r "$2" && test -w "$3" && test -x "$3" && "$1" -V'
  const { file, args, ...ids } = account('/bin/sh', ['-c', script, 'sh', binaries.postgres, binaries.catalog, folder])
  try {
    return (await runProgram(file, args, { ...ids, env: binaries.env })).ok
  } catch (error) {
    // There is no setpriv, or this root may not change its account (a container without capabilities).
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'EPERM') return false
    throw error
  }
}
