/**
 * The account that PostgreSQL runs as. PostgreSQL does not run as root, so a service that runs as root starts it under another
 * account: the owner of an existing cluster, else `postgres`, else `nobody`.
 */

import { chown, lchown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedPostgresError } from './failure.ts'
import { runProgram } from './run-program.ts'

/** To start a program with; empty for the account of this process. */
export type Account = { readonly uid?: number; readonly gid?: number }

/**
 * Chooses the account for `folder`: an existing cluster, or the staging folder of a new one. As root, also gives the folder and
 * its files to the account: root may have copied them.
 */
export async function chooseAccount(folder: string): Promise<Account> {
  if (process.geteuid?.() !== 0) return {}
  const { uid, gid } = await stat(folder)
  if (uid !== 0) return { uid, gid }
  const account = await findAccount()
  for (const entry of await readdir(folder, { recursive: true }))
    await lchown(join(folder, entry), account.uid, account.gid)
  // The folder itself comes last: when this is interrupted, the next start does it again.
  await chown(folder, account.uid, account.gid)
  return account
}

async function findAccount() {
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
