/** The lines of curl that healthchecks' documentation shows, with another host and another key. */

import { tmpdir } from 'node:os'
import { beforeAll, expect, it } from 'vitest'
import { use } from '../support/use.ts'
import { startTestApp } from './service.ts'
import { call } from './tools.ts'

let key: string
let pingKey: string
const app = use(startTestApp)
beforeAll(async () => {
  key = (await app.client.post('/api-keys', { name: 'hc', scope: 'write', project_id: app.projectId })).body.key
  pingKey = (await app.client.post(`/projects/${app.projectId}/ping-key`)).body.ping_key
})

/** As a shell runs it. The addresses are in the environment, as jobs have them. */
function sh(line: string, env: Record<string, string> = {}): Promise<string> {
  const { origin: site } = new URL(app.apiUrl)
  const all = { HC: app.pingUrl, API: site, KEY: key, PING_KEY: pingKey, ...env }
  return call('bash', ['-c', line], { cwd: tmpdir(), env: all }, 'Install bash and curl.')
}

it('by uuid: a success, a start, a failure with its output, an exit status, a log, and runs with an id', async () => {
  const { publicId } = await app.createCheck({ name: 'By uuid' })
  const lines = [
    'curl -m 10 --retry 5 $HC/$UUID/start',
    'curl -m 10 --retry 5 $HC/$UUID',
    'curl -fsS -m 10 --retry 5 -o /dev/null $HC/$UUID && echo -n OK',
    'm=$(echo broken; exit 3); curl -fsS -m 10 --retry 5 --data-raw "$m" $HC/$UUID/$?',
    'ls /none 2> /dev/null; curl -fsS -m 10 --retry 5 $HC/$UUID/$?',
    'curl -fsS -m 10 --retry 5 --data-raw "step 1" $HC/$UUID/log',
    'RID=01234567-0123-4123-8123-0123456789ab; curl -fsS $HC/$UUID/start?rid=$RID && curl -fsS $HC/$UUID?rid=$RID',
    'curl -fsS --data-raw "disk full" $HC/$UUID/fail',
  ]
  for (const line of lines) expect(await sh(line, { UUID: publicId }), line).toMatch(/^(OK)+$/)
  const pings = (await app.storedPings(publicId)).map(({ type, exitCode, runId, body }) => [
    type,
    exitCode,
    runId,
    body?.toString() ?? null,
  ])
  const run = '01234567-0123-4123-8123-0123456789ab'
  expect(pings).toEqual([
    ['start', null, null, null],
    ['success', 0, null, null],
    ['success', 0, null, null],
    ['fail', 3, null, 'broken'],
    ['fail', 2, null, null],
    ['log', null, null, 'step 1'],
    ['start', null, run, null],
    ['success', 0, run, null],
    ['fail', null, null, 'disk full'],
  ])
})

it('by ping key and slug: an unknown one is not found until a ping creates it', async () => {
  expect(await sh('curl -sS -w " %{http_code}" $HC/$PING_KEY/db-backup')).toMatch(/ 404$/)
  expect(await sh('curl -fsS -m 10 --retry 5 "$HC/$PING_KEY/db-backup?create=1"')).toBe('Created')
  expect(await sh('curl -fsS -m 10 --retry 5 "$HC/$PING_KEY/db-backup/0?create=1"')).toBe('OK')
  expect(await sh('curl -fsS -m 10 --retry 5 $HC/ping/$PING_KEY/db-backup/fail')).toBe('OK')
})

it.each(['1', '2', '3'])(
  'the management API, version %s: lists, creates, changes, pauses, deletes',
  async (version) => {
    const run = async (line: string) => JSON.parse(await sh(line, { V: version }))
    const tag = `v${version}`
    const made = await run(
      `curl -fsS $API/api/v$V/checks/ --header "X-Api-Key: $KEY" --data '{"name": "Backups", "slug": "backups-${tag}", "tags": "prod www ${tag}", "timeout": 3600, "grace": 60}'`,
    )
    expect(made).toMatchObject({ name: 'Backups', tags: `prod www ${tag}`, timeout: 3_600, grace: 60, status: 'new' })
    const uuid = made.ping_url.split('/').at(-1)
    const again = `curl -fsS $API/api/v$V/checks/ --data '{"api_key": "'$KEY'", "slug": "backups-${tag}", "name": "Backups", "desc": "changed", "unique": ["slug"]}'`
    expect(await run(again)).toMatchObject({ ping_url: made.ping_url, desc: 'changed' })
    const list = `curl -fsS --header "X-Api-Key: $KEY" "$API/api/v$V/checks/?tag=${tag}&tag=www"`
    expect((await run(list)).checks).toMatchObject([{ ping_url: made.ping_url }])
    const pause = `curl -fsS $API/api/v$V/checks/${uuid}/pause --header "X-Api-Key: $KEY" --data ""`
    expect(await run(pause)).toMatchObject({ status: 'paused' })
    await sh(`curl -fsS ${made.ping_url}`)
    const get = `curl -fsS $API/api/v$V/checks/${uuid} --header "X-Api-Key: $KEY"`
    expect(await run(get)).toMatchObject({ status: 'up', n_pings: 1 })
    const remove = `curl -fsS $API/api/v$V/checks/${uuid} --request DELETE --header "X-Api-Key: $KEY"`
    expect(await run(remove)).toMatchObject({ name: 'Backups' })
    expect(await sh(`curl -sS -o /dev/null -w "%{http_code}" ${made.ping_url}`)).toBe('404')
  },
)
