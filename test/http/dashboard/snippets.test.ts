/** The snippets of "how to ping" report what they promise to a real ping API. Go compiles for a while: it is in the lane of the clients. */

import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { SNIPPET_IDS, type SnippetId, snippetsOf } from '../../../src/http/dashboard/pages/checks/snippets.ts'
import { startTestApp } from '../../support/app.ts'
import { canRun, runSnippet, startFront, withShortTimeout } from '../../support/snippet-runs.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'
import { use } from '../../support/use.ts'

const app = use(startTestApp)
const temp = use(makeTempFolder)

const ELSEWHERE: Partial<Record<SnippetId, string>> = { go: 'it is in the lane of the clients' }
const reasonNotToRun = (id: SnippetId) => ELSEWHERE[id] ?? (canRun(id) ? null : 'its program is not on this machine')
const run = SNIPPET_IDS.filter((id) => reasonNotToRun(id) === null)

function snippetAt(id: SnippetId, pingUrl: string) {
  const schedule = { periodSeconds: null, schedule: '0 2 * * *', timeZone: 'Europe/Berlin' }
  return snippetsOf({ pingUrl, slug: 'nightly-backup', kubernetes: null, ...schedule }).find((one) => one.id === id)!
}

/** Whose job says nothing to the snippet but its end. */
const LAST_LINE: SnippetId[] = ['curl', 'crontab']

for (const id of SNIPPET_IDS.filter((id) => !run.includes(id)))
  it(`the snippet ${id} is not run: ${reasonNotToRun(id)}`, (context) => context.skip())

describe.concurrent('the snippet', () => {
  it('is run for curl, a crontab, bash, Kubernetes, Python and Node.js', () =>
    expect(run).toEqual(expect.arrayContaining(['curl', 'crontab', 'bash', 'kubernetes', 'python', 'node'])))

  it.each(run)('%s reports a success, after a time-out and a 503', async (id) => {
    const { publicId } = await app.createCheck()
    await using unsteady = await startFront(app.pingUrl)
    const snippet = withShortTimeout(snippetAt(id, `${unsteady.url}/ping/${publicId}`))
    const { status, output } = await runSnippet(snippet, join(temp.path, publicId), '')
    expect({ status, output }).toEqual({ status: 0, output: expect.any(String) })
    const pings = (await app.storedPings(publicId)).map(({ type, exitCode }) => [type, exitCode])
    const isStarted = ['bash', 'python', 'node'].includes(id)
    expect(pings).toEqual([...(isStarted ? [['start', null]] : []), ['success', 0]])
  })

  it.each(run)('%s reports a failure, and ends as the job does', async (id) => {
    const { publicId } = await app.createCheck()
    const snippet = snippetAt(id, `${app.pingUrl}/ping/${publicId}`)
    const { status, output } = await runSnippet(snippet, join(temp.path, publicId), 'connection refused')
    expect(output).toContain('connection refused')
    const last = (await app.storedPings(publicId)).at(-1)
    if (id === 'curl') return expect(last).toBeUndefined()
    expect(last).toMatchObject({ type: 'fail', exitCode: id === 'crontab' ? 3 : status })
    if (LAST_LINE.includes(id)) return
    expect(status).not.toBe(0)
    expect(last!.body!.toString()).toContain('connection refused')
  })

  it.each(run)('%s changes nothing for the job when the ping cannot be sent', async (id) => {
    // An unknown check: no retry.
    const snippet = snippetAt(id, `${app.pingUrl}/ping/${randomUUID()}`)
    const { status, output } = await runSnippet(snippet, join(temp.path, `unknown-${id}`), '')
    expect(output).toMatch(/here goes your job|dumping/)
    expect(output).toMatch(/404/)
    // cron looks at no exit code; it mails what the line prints.
    if (id !== 'crontab') expect(status).toBe(0)
  })
})
