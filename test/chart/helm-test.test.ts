/** What the pod of `helm test` runs, as the chart hands it over, against the real service. */

import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestApp, type TestApp } from '../support/app.ts'
import { spawnService } from '../support/service-process.ts'
import { listPods, renderChart } from './chart.ts'

let app: TestApp
let args: readonly string[]

beforeAll(async () => {
  app = await startTestApp()
  const [pod] = listPods(await renderChart()).filter(({ owner }) => owner.kind === 'Pod')
  args = pod!.spec.containers[0].args!
})
afterAll(() => app?.close())

async function run(changes: Record<string, string> = {}) {
  const environment = { API_URL: app.apiUrl, PING_URL: app.pingUrl, API_KEY: app.apiKey, ...changes }
  await using program = spawnService(environment, { command: process.execPath, args })
  const { status } = await program.end()
  return { status, stdout: program.stdout, stderr: program.stderr }
}

const listChecks = async () => (await app.call('GET', `/checks?project_id=${app.projectId}`)).body.checks

describe('helm test', () => {
  it('takes a check through its life and leaves nothing', async () => {
    const { status, stdout, stderr } = await run()
    expect(stderr).toBe('')
    expect(stdout.trim().split('\n')).toEqual([
      'ok: the management API responds',
      'ok: a check is created',
      'ok: a ping is accepted',
      'ok: the check is up',
      'ok: the check is deleted',
    ])
    expect(status).toBe(0)
    expect(await listChecks()).toEqual([])
  })

  it('says what it is when its key is of another database', async () => {
    const { status, stderr } = await run({ API_KEY: 'hbk_other_0123456789abcdef' })
    expect(status).toBe(1)
    expect(stderr).toMatch(
      /^not ok: the management API responds: GET \/api\/v1\/projects returned 401: .*BOOTSTRAP_API_KEY/,
    )
    expect(stderr).not.toContain('hbk_')
  })

  it('fails when pings are refused, names no id, and deletes its check all the same', async () => {
    const refuser = createServer((_, response) => response.writeHead(404).end('not found\n'))
    await new Promise<void>((resolve) => refuser.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = refuser.address() as { port: number }
      const { status, stdout, stderr } = await run({ PING_URL: `http://127.0.0.1:${port}` })
      expect(status).toBe(1)
      expect(stderr.trim()).toBe('not ok: a ping is accepted: GET /ping/... returned 404: not found')
      expect(stdout).toContain('ok: the check is deleted')
      expect(await listChecks()).toEqual([])
    } finally {
      await new Promise((resolve) => refuser.close(resolve))
    }
  })

  it('bears with a service that is not there yet', async () => {
    const answers = [503, 503, 200]
    const starting = createServer((_, response) => response.writeHead(answers.shift() ?? 200).end('OK'))
    await new Promise<void>((resolve) => starting.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = starting.address() as { port: number }
      // Nothing that is pinged there counts: the check stays new, and what is seen is that the ping was tried again.
      await using program = spawnService(
        { API_URL: app.apiUrl, PING_URL: `http://127.0.0.1:${port}`, API_KEY: app.apiKey },
        { command: process.execPath, args },
      )
      await program.waitFor(/^ok: a ping is accepted$/m)
      expect(answers).toEqual([])
    } finally {
      await new Promise((resolve) => starting.close(resolve))
    }
  })
})
