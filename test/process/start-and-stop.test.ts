import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { isUuid } from '../../src/domain/ids.ts'
import { readPidFile } from '../../src/embedded-postgres/postmaster.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { createApiClient } from '../support/api-client.ts'
import { findFreePort } from '../support/ports.ts'
import { aPing, ask, createAgent, findMissing, type SentPing, sendPing } from '../support/sent-pings.ts'
import {
  assertPackagesAreInstalled,
  databaseEnvironment,
  listAlive,
  listTree,
  type Program,
  spawnService,
  startService,
  stopAll,
  withoutAudit,
} from '../support/service-process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'
import { use } from '../support/use.ts'

const run = promisify(execFile)
const ENDED_WELL = { status: 0, signal: null }

let count = 0
const newDataDir = () => join(temp.path, `data-${count++}`)

const temp = use(makeTempFolder)

/** The one value after a word of what the first start prints. */
function printed(stdout: string, word: string): string {
  return new RegExp(`^ +${word} +(\\S.*)$`, 'm').exec(stdout)?.[1] ?? ''
}

describe('the first start', () => {
  it('prints all that is needed to go on, and the second keeps everything and prints no secret', async () => {
    const dataDir = newDataDir()
    await using first = await startService({ DATA_DIR: dataDir })
    const project = printed(first.stdout, 'project')
    const key = printed(first.stdout, 'API key')
    const [email = '', password = ''] = printed(first.stdout, 'log-in').split(' ')
    expect(printed(first.stdout, 'ping')).toMatch(`${first.ping}/ping/`)
    expect(printed(first.stdout, 'api')).toMatch(first.api)
    expect(printed(first.stdout, 'ops')).toMatch(first.ops)
    expect(project).toSatisfy(isUuid)
    expect(key).toMatch(/^hbk_[0-9A-Za-z]+_[0-9A-Za-z]+$/)
    expect(first.stdout.trimEnd().split('\n').at(-1)).toBe(`ready ping=${first.ping} api=${first.api} ops=${first.ops}`)
    for (const address of [first.ping, first.api, first.ops]) expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+/)

    const client = await createApiClient(first.api, key)
    expect((await client.post('/auth/login', { email, password }, { key: null })).status).toBe(200)
    const line = /^ +(curl .*\/checks .*)$/m.exec(first.stdout)![1]!
    const check = JSON.parse((await run('bash', ['-c', line])).stdout)
    expect(check).toMatchObject({ project_id: project, status: 'new' })
    expect((await sendPing(first.ping, aPing(check.public_id))).status).toBe(200)

    const stopped = await stopAll(first, 'SIGTERM')
    expect(stopped).toEqual({ exit: ENDED_WELL, started: expect.any(Number), alive: [] })
    expect(stopped.started).toBeGreaterThan(5)

    await using second = await startService({ DATA_DIR: dataDir })
    expect(printed(second.stdout, 'project')).toBe(project)
    for (const secret of ['hbk_', password]) expect(second.stdout + second.stderr).not.toContain(secret)
    const again = await createApiClient(second.api, key)
    expect((await again.get(`/checks/${check.id}`)).body).toMatchObject({
      public_id: check.public_id,
      // Late when this start took more than the period of 10 s.
      status: expect.stringMatching(/^(up|late)$/),
    })
    expect((await again.get(`/checks/${check.id}/pings`)).body.pings).toHaveLength(1)
    expect((await again.post('/auth/login', { email, password }, { key: null })).status).toBe(200)
    expect(await stopAll(second, 'SIGINT')).toEqual({ exit: ENDED_WELL, started: expect.any(Number), alive: [] })
    expect(withoutAudit(first.stderr)).toBe('')
    // A stop and a start that take more than 5 s together are a downtime of the service, which it logs.
    expect(
      withoutAudit(second.stderr).replace(/^.*no replica could store pings in the database for a while.*\n/, ''),
    ).toBe('')
  })
})

describe('standard output without a reader (npm start | head -1)', () => {
  it('does not end the service: it starts, serves, and stops in order on a signal', async () => {
    const port = await findFreePort()
    await using service = spawnService({ DATA_DIR: newDataDir(), OPS_PORT: port })
    await service.waitFor(/\n/)
    service.closeStdout()
    const isReady = () => ask(`http://127.0.0.1:${port}/readyz`).then(({ status }) => status === 200)
    await eventually('the service is ready', () => isReady().catch(() => false), 60_000)
    const { exit, started, alive } = await stopAll(service, 'SIGTERM')
    const stderr = withoutAudit(service.stderr)
    expect({ exit, alive, stderr }).toEqual({ exit: ENDED_WELL, alive: [], stderr: '' })
    expect(started).toBeGreaterThan(5)
  })
})

describe('kill -9', () => {
  it('of the service loses no acknowledged ping, and the next start uses the server that was left behind, and ends it', async () => {
    const dataDir = newDataDir()
    await using service = await startService({ DATA_DIR: dataDir, ...databaseEnvironment(''), DATABASE_URL: '' })
    const client = await createApiClient(service.api, databaseEnvironment('').BOOTSTRAP_API_KEY!)
    const { body: check } = await client.post('/checks', {
      project_id: databaseEnvironment('').BOOTSTRAP_PROJECT_ID,
      name: 'Backup',
    })
    const tree = await listTree(service.pid)
    const acknowledged: SentPing[] = []
    const agent = createAgent()
    let isOver = false
    const clients = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const { ping, status } = await sendPing(service.ping, aPing(check.public_id), agent)
        if (status === 200) acknowledged.push(ping)
      }
    })
    await eventually('300 pings are acknowledged', () => acknowledged.length >= 300)
    await service.kill()
    isOver = true
    await Promise.all(clients)
    const { pid } = await readPidFile(join(dataDir, 'postgres'))
    expect(await listAlive(tree)).toContain(pid)

    await using next = await startService({ DATA_DIR: dataDir, ...databaseEnvironment(''), DATABASE_URL: '' })
    expect(next.stdout).toContain(`using the PostgreSQL (process ${pid}) that an earlier run left behind`)
    const password = (await readFile(join(dataDir, 'postgres-password'), 'utf8')).trim()
    const port = /"-p" "(\d+)"/.exec(await readFile(join(dataDir, 'postgres', 'postmaster.opts'), 'utf8'))![1]
    const database = createDatabase({
      url: `postgres://heartbeat:${password}@127.0.0.1:${port}/heartbeat`,
      name: 'test',
      connections: 1,
    })
    expect(await findMissing(database, acknowledged)).toEqual([])
    await database.close()
    expect((await next.stop()).status).toBe(0)
    expect(await listAlive(tree)).toEqual([])
  })
})

describe('npm start', () => {
  const NPM_START: Program = { command: 'npm', args: ['start'], isGroup: true }

  beforeAll(assertPackagesAreInstalled)

  it('serves, and SIGINT to its group, as Ctrl-C sends it, ends everything with 0', async () => {
    await using service = await startService({ DATA_DIR: newDataDir() }, NPM_START)
    expect((await sendPing(service.ping, aPing('00000000-0000-4000-8000-000000000000'))).status).toBe(404)
    const { exit, started, alive } = await stopAll(service, 'SIGINT', () => process.kill(-service.pid, 'SIGINT'))
    expect({ exit, alive }).toEqual({ exit: ENDED_WELL, alive: [] })
    expect(started).toBeGreaterThan(6)
  })
})
