/**
 * Clients that were written for healthchecks, with their defaults: no signal is lost, however much text comes with it.
 */

import { dirname, join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { use } from '../support/use.ts'
import { environmentOf, startTestApp } from './service.ts'
import { buildWithCargo, call, HERE, installFromPyPi } from './tools.ts'

let python: string

const app = use(startTestApp)
beforeAll(async () => {
  python = await installFromPyPi()
})

async function runProgram(name: string) {
  const { id, publicId } = await app.createCheck({ name })
  const env = { ...environmentOf(app), PUBLIC_ID: publicId }
  const output = await call(python, [join(HERE, 'programs', name)], { cwd: dirname(python), env })
  const { body } = await app.client.get(`/checks/${id}`)
  const pings = (await app.storedPings(publicId)).map(({ type, exitCode, body }) => ({
    type,
    exitCode,
    text: body === null ? null : body.toString().slice(-80),
    bytes: body?.length ?? 0,
  }))
  return { output, status: body.status, pings }
}

it("borgmatic's hook with 30 KB of logs: a success and a failure are both recorded", async () => {
  const { status, pings } = await runProgram('backup_hook.py')
  const start = { type: 'start', exitCode: null, text: null, bytes: 0 }
  expect(pings).toEqual([
    start,
    { type: 'success', exitCode: 0, text: expect.stringMatching(/0999 of the backup\n.*\n$/), bytes: 10_240 },
    start,
    { type: 'fail', exitCode: null, text: expect.stringMatching(/0999 of the backup\n.*\n$/), bytes: 10_240 },
  ])
  expect(status).toBe('down')
})

it('healthchecks-io: each signal is recorded, also the one with too much text', async () => {
  const { output, status, pings } = await runProgram('signals.py')
  const answers = JSON.parse(output) as [boolean, string][]
  expect(answers.slice(0, 4)).toEqual(Array.from({ length: 4 }, () => [true, 'OK']))
  expect(answers[4]).toEqual([false, 'body too large: 10240 bytes at most; the ping was recorded with the last 10240'])
  expect(pings.map(({ type, exitCode }) => [type, exitCode])).toEqual([
    ['start', null],
    ['success', 0],
    ['fail', 9],
    ['success', 0],
    ['fail', null],
  ])
  expect(pings.at(-1)).toMatchObject({ text: expect.stringMatching(/xthe end$/), bytes: 10_240 })
  expect(status).toBe('down')
})

it("by ping key and slug: borgmatic's hook creates the check, and healthchecks-io finds it", async () => {
  const { ping_key } = (await app.client.post(`/projects/${app.projectId}/ping-key`)).body
  const env = { ...environmentOf(app), PING_KEY: ping_key }
  const output = await call(python, [join(HERE, 'programs/by_slug.py')], { cwd: dirname(python), env })
  expect(JSON.parse(output)).toEqual({
    answers: Array.from({ length: 4 }, () => [true, 'OK']),
    unknown: 'CheckNotFoundError',
  })
  const { checks } = (await app.client.get(`/checks?project_id=${app.projectId}&q=borg-backup`)).body
  expect(checks).toMatchObject([{ name: 'borg-backup', slug: 'borg-backup', status: 'down' }])
  const { public_id } = (await app.client.get(`/checks/${checks[0].id}`)).body
  expect(
    (await app.storedPings(public_id)).map(({ type, exitCode, body }) => [type, exitCode, `${body ?? ''}`]),
  ).toEqual([
    ['start', null, ''],
    ['success', 0, ''],
    ['start', null, ''],
    ['fail', 3, 'exit 3'],
    ['success', 0, ''],
    ['fail', null, 'disk full'],
  ])
})

/** A project with a channel, and keys that are bound to it. */
async function addProject(): Promise<Record<string, string>> {
  const { id } = (await app.client.post('/projects', { name: 'Of a client' })).body
  const config = { url: 'https://example.com/' }
  await app.client.post('/channels', { kind: 'webhook', name: 'Hook', config, project_id: id })
  const bind = async (scope: string): Promise<string> =>
    (await app.client.post('/api-keys', { name: scope, scope, project_id: id })).body.key
  return { ...environmentOf(app), BOUND_KEY: await bind('write'), READ_KEY: await bind('read') }
}

it('healthchecks-io: each call of the management API, in each version, as a client of healthchecks makes it', async () => {
  const env = await addProject()
  const output = await call(python, [join(HERE, 'programs', 'manage.py')], { cwd: dirname(python), env })
  const { wrong, read, ...versions } = JSON.parse(output)
  expect(Object.keys(versions)).toEqual(['1', '2', '3'])
  for (const [version, found] of Object.entries(versions))
    expect(found).toEqual({
      same: true,
      desc: 'changed',
      paused: 'paused',
      after: 'up',
      found: [`Backup ${version}`],
      pings: [
        ['success', 3],
        ['fail', 2],
        ['success', 1],
      ],
      badges: ['*', 'nightly', `v${version}`],
      channels: ['Hook'],
      slot: null,
      invalid: 'BadAPIRequestError',
      deleted: true,
      gone: 'CheckNotFoundError',
    })
  expect(wrong).toBe('HCAPIAuthError')
  expect(read).toEqual([null, true])
})

it('the Rust crate healthchecks: its calls in versions 2 and 3, to addresses without the slash at their end', async ({
  skip,
}) => {
  const program = (await buildWithCargo()) ?? skip('cargo is not in PATH')
  const { wrong, ...versions } = JSON.parse(await call(program, [], { cwd: HERE, env: await addProject() }))
  expect(Object.keys(versions)).toEqual(['v2', 'v3'])
  for (const [version, found] of Object.entries(versions))
    expect(found).toEqual({
      tags: `rust ${version}`,
      updated: true,
      desc: 'changed',
      signals: [true, true, true, true],
      down: ['down', 4],
      paused: 'paused',
      resumed: [true, 'up'],
      invalid: 'NotWellFormed',
      listed: [`Rust ${version}`],
      channels: ['Hook'],
      deleted: true,
      gone: 'NoCheckFound',
    })
  expect(wrong).toBe('InvalidApiKey')
}, 600_000)
