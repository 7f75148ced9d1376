/** A real PgBouncer on loopback, before the database of a test. It ends with the process that started it. */

import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import { openHome, quoteLog, startProgram } from '../../tools/cluster/control-plane-process.ts'
import { findPgBouncer } from '../../tools/programs/pgbouncer-program.ts'
import { findFreePort } from './ports.ts'
import { eventually } from './until.ts'

export interface PgBouncer extends AsyncDisposable {
  /** The same database, through the pooler. */
  readonly url: string
}

/** `settings` are of the section `[pgbouncer]`, such as `pool_mode`. */
export async function startPgBouncer(
  databaseUrl: string,
  settings: Readonly<Record<string, string>>,
): Promise<PgBouncer> {
  await using undo = new AsyncDisposableStack()
  const { path, environment } = await findPgBouncer()
  const home = await openHome()
  undo.defer(() => home.close())
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  const url = new URL(databaseUrl)
  url.host = `127.0.0.1:${await findFreePort()}`
  const users = join(home.path, 'users.txt')
  const file = join(home.path, 'pgbouncer.ini')
  const all = {
    listen_addr: url.hostname,
    listen_port: url.port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    // It refuses to run as root, and becomes this user.
    ...(process.getuid?.() === 0 ? { user: 'nobody' } : {}),
    ...settings,
  }
  const sections = [
    '[databases]',
    `* = host=${hostname} port=${port} dbname=${pathname.slice(1)}`,
    '[pgbouncer]',
    ...Object.entries(all).map(([name, value]) => `${name} = ${value}`),
  ]
  await writeFile(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`)
  await writeFile(file, `${sections.join('\n')}\n`)
  await chmod(home.path, 0o711)
  const program = startProgram({ name: 'pgbouncer', path, args: [file], home, environment, onLost: () => {} })
  await eventually('PgBouncer takes connections', async () => {
    if (program.hasEnded()) throw new Error(await quoteLog(program))
    const client = new pg.Client({ connectionString: url.href })
    await client.connect()
    await client.end()
    return true
  })
  const running = undo.move()
  return { url: url.href, [Symbol.asyncDispose]: () => running.disposeAsync() }
}
