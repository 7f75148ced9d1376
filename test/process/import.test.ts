import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createEmptyDatabase } from '../support/database.ts'
import { createDataDirs } from '../support/embedded.ts'
import { startFakeHealthchecks } from '../support/fake-healthchecks.ts'
import { tokenOf, writeKumaDatabase } from '../support/kuma-database.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, spawnService, startService } from '../support/service-process.ts'
import { makeTempFolder } from '../support/temp-folder.ts'
import { use } from '../support/use.ts'

let file: string

const temp = use(makeTempFolder)
const database = use(createEmptyDatabase)
beforeAll(async () => {
  file = join(temp.path, 'kuma.db')
  writeKumaDatabase(file, [{ name: 'One' }])
})

async function runImport(environment: Record<string, string>, args: readonly string[]) {
  const program = { command: process.execPath, args: ['src/main.ts', 'import', ...args] }
  await using command = spawnService(environment, program)
  const { status } = await command.end(240_000)
  return { status, lines: command.stdout.trim().split('\n'), stderr: command.stderr }
}

const kuma = (path = file, project = 'default') => ['uptime-kuma', '--file', path, '--project', project]
/** The same secrets as of a database that a test names. */
const { SECRET_KEY: _, ...BOOTSTRAP } = databaseEnvironment('')
const embedded = (dataDir: string) => {
  const { DATABASE_URL: _url, ...environment } = BOOTSTRAP
  return { ...environment, DATA_DIR: dataDir }
}

describe('the command import', () => {
  it('imports beside a service on the same database, which takes the pushes at once', async () => {
    const environment = databaseEnvironment(database.url)
    await using service = await startService(environment)
    const first = await runImport(environment, kuma())
    expect(first).toMatchObject({ status: 0, stderr: '' })
    expect(first.lines.at(-1)).toBe('made 1, there already 0, refused 0, left out 0')
    const pushed = await fetch(`${service.ping}/api/push/${tokenOf(0)}?status=up&msg=OK&ping=12`)
    expect([pushed.status, await pushed.json()]).toEqual([200, { ok: true }])
    const again = await runImport(environment, kuma())
    expect(again.lines.at(-1)).toBe('made 0, there already 1, refused 0, left out 0')
  })

  it('uses the embedded database, whether the service runs or not', async () => {
    const dataDir = createDataDirs(temp.path).newFolder()
    const before = await runImport(embedded(dataDir), [...kuma(), '--dry-run'])
    expect(before).toMatchObject({ status: 0, stderr: '' })
    await using service = await startService(embedded(dataDir))
    const beside = await runImport(embedded(dataDir), kuma())
    expect(beside).toMatchObject({ status: 0, stderr: '' })
    const url = `${service.api}/checks?project_id=${PROJECT_ID}`
    const listed = await fetch(url, { headers: { authorization: `Bearer ${API_KEY}` } })
    expect(await listed.json()).toMatchObject({ checks: [{ name: 'One' }] })
  })

  it('ends with the status of what happened, and shows no key', async () => {
    await using source = await startFakeHealthchecks({ checks: [{ name: 'No id', grace: 60 }], channels: [] })
    const environment = databaseEnvironment(database.url)
    const from = (key: string) => ['healthchecks', '--url', source.url, '--key', key, '--project', 'default']
    const waitFirst = () => {
      source.faults = [{ status: 429, headers: { 'retry-after': '0' } }]
      return from('w'.repeat(32))
    }
    const runs = [
      await runImport(environment, kuma(join(temp.path, 'missing.db'))),
      await runImport(environment, from('s3cret')),
      await runImport(environment, waitFirst()),
      await runImport(environment, kuma(file, 'nowhere')),
      await runImport(environment, ['nagios']),
    ]
    expect(runs.map(({ status }) => status)).toEqual([1, 1, 3, 2, 2])
    expect(runs.map(({ stderr }) => stderr.split('\n')[0])).toEqual([
      expect.stringMatching(/^the file .*missing\.db is missing or cannot be read$/),
      expect.stringMatching(/ rejects the key: /),
      `${source.url}: it responds with 429; trying again in 0 s`,
      'there is no project nowhere; there are: default',
      'nothing can be imported from there',
    ])
    expect(JSON.stringify(runs)).not.toContain('s3cret')
  })

  it('has not done its work when a signal ends it before it begins', async () => {
    const absent = Object.assign(new URL(database.url), { port: '1' }).href
    const program = { command: process.execPath, args: ['src/main.ts', 'import', ...kuma()] }
    await using command = spawnService(databaseEnvironment(absent), program)
    await command.waitFor(/waiting for the database/)
    expect(await command.stop()).toEqual({ status: 1, signal: null })
  })
})
