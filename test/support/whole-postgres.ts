/** A PostgreSQL with all its programs, for what pg_dump and others do. It runs as `nobody` where the tests run as root. */

import { execFile, spawn } from 'node:child_process'
import { chown, mkdir } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { findPostgres } from '../../tools/programs/postgres-programs.ts'
import { findFreePort } from './ports.ts'
import { makeTempFolder } from './temp-folder.ts'
import { eventually } from './until.ts'

const NOBODY = 65_534

export interface WholePostgres extends AsyncDisposable {
  /** PATH with its programs, and how they reach the server as the role `heartbeat`, who owns the database `heartbeat`. */
  readonly environment: Readonly<Record<string, string>>
  urlOf(database: string): string
}

export async function startWholePostgres(): Promise<WholePostgres> {
  await using undo = new AsyncDisposableStack()
  const { folder, environment } = await findPostgres()
  const temp = await makeTempFolder()
  undo.defer(() => temp.remove())
  const data = join(temp.path, 'data')
  const port = await findFreePort()
  await mkdir(data, { mode: 0o700 })
  const account = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
  if (account.uid !== undefined) await chown(data, NOBODY, NOBODY)
  const options = { env: { PATH: process.env.PATH, ...environment }, cwd: data, ...account }
  const initdb = ['-D', data, '-U', 'postgres', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync']
  await promisify(execFile)(join(folder, 'initdb'), initdb, options)
  const settings = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' }
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const server = spawn(join(folder, 'postgres'), ['-D', data, ...args], { ...options, stdio: 'ignore' })
  const ended = new Promise((resolve) => server.once('exit', resolve))
  undo.defer(async () => {
    server.kill('SIGQUIT')
    await ended
  })
  await eventually('PostgreSQL takes connections', async () => {
    const admin = new pg.Client({ host: '127.0.0.1', port: Number(port), user: 'postgres', database: 'postgres' })
    await admin.connect()
    await admin.query('create role heartbeat login createdb')
    await admin.query('create database heartbeat owner heartbeat')
    await admin.end()
    return true
  })
  const running = undo.move()
  return {
    environment: {
      ...environment,
      PATH: [folder, process.env.PATH].join(delimiter),
      PGHOST: '127.0.0.1',
      PGPORT: port,
      PGUSER: 'heartbeat',
    },
    urlOf: (database) => `postgres://heartbeat@127.0.0.1:${port}/${database}`,
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}
