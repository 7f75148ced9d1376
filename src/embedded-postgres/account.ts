import { chown, lchown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { errorCode } from '../runtime/error-code.ts'
import type { Binaries } from './binaries.ts'
import { EmbeddedPostgresError } from './failure.ts'
import { runProgram } from './processes.ts'

/** A program with its arguments, as somebody may run it. */
export type Command = { file: string; args: string[]; uid?: number; gid?: number }

/** The account that PostgreSQL runs as: ours, or an unprivileged one when we are root, which PostgreSQL refuses. */
export type Account = { command(file: string, args: string[]): Command }

const OURSELVES: Account = { command: (file, args) => ({ file, args }) }

type Ids = { uid: number; gid: number }

/**
 * Chooses how to run the programs on `folder` (an existing cluster, or the staging folder of a new one); as root, gives it
 * and what is in it to the account.
 *
 * An ordinary user runs them itself. Root uses the owner of an existing cluster, else `postgres`, else `nobody`. Where
 * that account cannot reach the programs or the folder (root's home, `mktemp -d`, files unpacked under umask 077), it is
 * lent one capability through setpriv: reading past permissions, or, where root itself lacks that one or files need it,
 * overriding them. `no_setuid_fixup` is needed for access(2), by which initdb and postgres look at their own program: it
 * ignores capabilities of ordinary accounts without it. `no-new-privs` keeps the loan from growing.
 */
export async function chooseAccount(folder: string, binaries: Binaries, dataDir: string): Promise<Account> {
  if (process.geteuid?.() !== 0) {
    await refuseForeignFolder(folder, dataDir)
    return OURSELVES
  }
  const ids = await chooseIds(folder)
  await giveTree(folder, ids)
  for (const command of waysToRun(ids)) {
    if (await canReach(command, binaries, folder)) return { command }
  }
  throw new EmbeddedPostgresError(
    'unsupported',
    `PostgreSQL does not run as root, and uid ${ids.uid} can reach neither ${binaries.postgres} nor data folder ${dataDir}: ` +
      'make their parent folders passable (chmod a+x), install setpriv, start as an ordinary user, or set DATABASE_URL',
  )
}

async function refuseForeignFolder(folder: string, dataDir: string): Promise<void> {
  const owner = (await stat(folder)).uid
  const own = process.geteuid?.()
  if (owner === own) return
  throw new EmbeddedPostgresError(
    'not-ours',
    `the database in data folder ${dataDir} belongs to uid ${owner}, and this is uid ${own}: ` +
      'start as root or as that account, or set DATA_DIR to another folder',
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

/** A copy or a chown by root leaves a cluster that PostgreSQL refuses; links are given, not followed. */
async function giveTree(folder: string, { uid, gid }: Ids): Promise<void> {
  if ((await stat(folder)).uid === uid) return
  const entries = await readdir(folder, { recursive: true })
  for (const entry of entries) await lchown(join(folder, entry), uid, gid)
  // The folder itself comes last: when this is cut short, the next start does it again.
  await chown(folder, uid, gid)
}

function waysToRun({ uid, gid }: Ids): Account['command'][] {
  const lend =
    (capability: string): Account['command'] =>
    (file, args) => ({
      file: 'setpriv',
      args: [
        ...[`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs'],
        ...[`--inh-caps=-all,+${capability}`, `--ambient-caps=-all,+${capability}`],
        ...['--securebits=+no_setuid_fixup', '--', file, ...args],
      ],
    })
  const plain: Account['command'] = (file, args) => ({ file, args, uid, gid })
  return process.platform === 'linux' ? [plain, lend('dac_read_search'), lend('dac_override')] : [plain]
}

/** Asks the system instead of reading modes: access lists, mounts and containers have their say too. */
async function canReach(command: Account['command'], binaries: Binaries, folder: string): Promise<boolean> {
  const script = 'test -x "$1" && test -r "$2" && test -w "$3" && test -x "$3" && "$1" -V'
  const { file, args, ...ids } = command('/bin/sh', ['-c', script, 'sh', binaries.postgres, binaries.catalog, folder])
  try {
    return (await runProgram(file, args, { ...ids, env: binaries.env })).ok
  } catch (error) {
    // No setpriv here, or a root that may not change its account (a container without capabilities).
    if (errorCode(error) === 'ENOENT' || errorCode(error) === 'EPERM') return false
    throw error
  }
}
