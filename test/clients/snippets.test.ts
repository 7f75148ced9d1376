/** The snippet of "how to ping" that has to be compiled. test/http/dashboard/snippets.test.ts runs the others. */

import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { snippetsOf } from '../../src/http/dashboard/pages/checks/snippets.ts'
import { runSnippet, startFront, withShortTimeout } from '../support/snippet-runs.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { startTestApp, type TestApp } from './service.ts'

let app: TestApp
let temp: TempFolder

beforeAll(async () => {
  ;[app, temp] = await Promise.all([startTestApp(), makeTempFolder()])
})
afterAll(async () => {
  await app?.close()
  await temp?.remove()
})

function goAt(pingUrl: string) {
  const check = { slug: 'job', kubernetes: null, periodSeconds: 3_600, schedule: null, timeZone: null }
  return snippetsOf({ pingUrl, ...check }).find(({ id }) => id === 'go')!
}

it('reports a success from Go, after a time-out and a 503', async () => {
  const { publicId } = await app.createCheck()
  await using unsteady = await startFront(app.pingUrl)
  const snippet = withShortTimeout(goAt(`${unsteady.url}/ping/${publicId}`))
  const { status, output } = await runSnippet(snippet, join(temp.path, 'success'), '')
  expect({ status, output }).toEqual({ status: 0, output: expect.stringContaining('here goes your job') })
  expect((await app.storedPings(publicId)).map(({ type }) => type)).toEqual(['start', 'success'])
})

it('reports a failure from Go, and ends as the job does', async () => {
  const { publicId } = await app.createCheck()
  const snippet = goAt(`${app.pingUrl}/ping/${publicId}`)
  const { status, output } = await runSnippet(snippet, join(temp.path, 'failure'), 'connection refused')
  expect({ status, output }).toEqual({ status: 1, output: expect.stringContaining('connection refused') })
  expect((await app.storedPings(publicId)).at(-1)).toMatchObject({ type: 'fail', exitCode: 1 })
})
