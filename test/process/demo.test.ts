/** `npm run demo`, as a person runs it who has a service beside it. */

import { readdir } from 'node:fs/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createApiClient } from '../support/api-client.ts'
import { API_KEY, assertPackagesAreInstalled, spawnService, stopAll } from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'

const DEMO = { command: 'npm', args: ['run', 'demo'], isGroup: true }
const READY_MS = 15_000

let temp: TempFolder
beforeAll(async () => {
  assertPackagesAreInstalled()
  temp = await makeTempFolder()
})
afterAll(() => temp.remove())

it('the demo shows a month of jobs, and keeps nothing after Ctrl-C', async () => {
  const ofTheirService = { DATABASE_URL: 'postgres://127.0.0.1:1/theirs', DATA_DIR: `${temp.path}/theirs` }
  const environment = { ...ofTheirService, TMPDIR: temp.path, BOOTSTRAP_API_KEY: API_KEY }
  await using demo = spawnService(environment, DEMO)
  const { api } = await demo.ready(READY_MS)
  expect(demo.stdout).toMatch(/log-in +admin@example\.com \S+/)
  expect(await readdir(temp.path)).toEqual([expect.stringMatching(/^heartbeat-test-/)])

  const client = await createApiClient(api, API_KEY)
  const { body: projects } = await client.get('/projects')
  const lists = (projects.projects as { id: string }[]).map(({ id }) => client.get(`/checks?project_id=${id}`))
  const checks = (await Promise.all(lists)).flatMap(({ body }) => body.checks)
  expect(checks.length).toBeGreaterThanOrEqual(20)
  expect(new Set(checks.map(({ status }) => status))).toEqual(new Set(['up', 'late', 'down', 'new', 'paused']))
  const backup = checks.find(({ name }) => name === 'Nightly database backup')
  const { body: history } = await client.get(`/checks/${backup.id}/pings?limit=1000`)
  const days = new Set(history.pings.map((ping: { created_at: string }) => ping.created_at.slice(0, 10)))
  expect(days.size).toBeGreaterThan(25)

  const { exit, started, alive } = await stopAll(demo, 'SIGINT')
  expect({ exit, alive }).toEqual({ exit: { status: 0, signal: null }, alive: [] })
  expect(started).toBeGreaterThan(2)
  expect(await readdir(temp.path)).toEqual([])
})
