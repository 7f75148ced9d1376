import { expect, it } from 'vitest'
import { createEmptyDatabase } from '../support/database.ts'
import { READ_WRITE_KEY, recordedChecks, startFakeHealthchecks } from '../support/fake-healthchecks.ts'
import { API_KEY, databaseEnvironment, PROJECT_ID, spawnService, startService } from '../support/service-process.ts'
import { eventually } from '../support/until.ts'

const spawnImport = (environment: Record<string, string>, args: readonly string[]) =>
  spawnService(environment, { command: process.execPath, args: ['src/main.ts', 'import', ...args] })

it('an import makes 2,000 checks, each once, also when it is killed in the middle and the source has faults', async () => {
  const checks = recordedChecks(2_300)
    .filter(({ name }) => name !== 'OnCalendar')
    .slice(0, 2_000)
  await using source = await startFakeHealthchecks({ checks, channels: [] })
  const empty = await createEmptyDatabase()
  try {
    const environment = databaseEnvironment(empty.url)
    await using service = await startService(environment)
    const list = async () => {
      const headers = { 'x-api-key': key }
      const { checks } = (await (await fetch(`${service.api.replace('v1', 'v3')}/checks/`, { headers })).json()) as {
        checks: { uuid: string }[]
      }
      return checks.map(({ uuid }) => uuid)
    }
    const authorization = `Bearer ${API_KEY}`
    const body = JSON.stringify({ name: 'reader', scope: 'write', project_id: PROJECT_ID })
    const made = await fetch(`${service.api}/api-keys`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body,
    })
    const { key } = (await made.json()) as { key: string }
    const args = ['healthchecks', '--url', source.url, '--key', READ_WRITE_KEY, '--project', 'default']
    source.faults = [{ status: 429, headers: { 'retry-after': '1' } }, null, { status: 500 }]
    {
      await using first = spawnImport(environment, args)
      await eventually('100 checks', async () => (await list()).length >= 100)
      await first.kill()
    }
    const before = (await list()).length
    expect(before).toBeLessThan(2_000)
    await using second = spawnImport(environment, args)
    const { status } = await second.end(240_000)
    expect({ status, stderr: second.stderr }).toEqual({ status: 0, stderr: '' })
    expect(second.stdout.trim().split('\n').at(-1)).toBe(
      `made ${2_000 - before}, there already ${before}, refused 0, left out 0`,
    )
    expect((await list()).sort()).toEqual(checks.map(({ uuid }) => uuid).sort())
  } finally {
    await empty.close()
  }
}, 300_000)
