/** Clients in use: curl, and wrappers such as runitor that use the wire format of healthchecks. */

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, it } from 'vitest'
import type { RecordPing } from '../../../src/http/ping/app.ts'
import { aPingApp, serve } from '../../support/servers.ts'
import { usePings } from './fixture.ts'

let url: string

const { app, check, stored } = usePings()
beforeEach(() => {
  url = app.pingUrl + check.target
})

/** A ping API with these results, one after the other. */
async function startScriptedServer(...results: (Awaited<ReturnType<RecordPing>> | Error)[]) {
  const pings: unknown[] = []
  const faults: unknown[] = []
  const handler = aPingApp({
    record: async (ping) => {
      pings.push(ping)
      const result = results[pings.length - 1] ?? 'stored'
      if (result instanceof Error) throw result
      return result
    },
    onError: (error) => faults.push(error),
  })
  const server = await serve({ handler })
  return { ...server, url: server.url + check.target, pings, faults }
}

describe('curl', () => {
  async function curl(input: string | Buffer, ...args: string[]) {
    const child = spawn('curl', ['--noproxy', '*', ...args])
    // curl may not read all of it.
    child.stdin.on('error', () => {})
    child.stdin.end(input)
    const [output, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
    return { status, output, errors }
  }
  const USUAL = ['-fsS', '-m', '10', '--retry', '3']

  it('pings', async () => {
    expect(await curl('', ...USUAL, url)).toEqual({ status: 0, output: 'OK', errors: '' })
    expect(await stored()).toMatchObject([{ type: 'success', body: null }])
  })

  it('sends what a job wrote, with its exit code', async () => {
    const log = 'step 1\nstep 2: disk full\n'
    expect((await curl(log, ...USUAL, '-X', 'POST', '--data-binary', '@-', `${url}/7`)).status).toBe(0)
    expect(await stored()).toMatchObject([{ type: 'fail', exitCode: 7, body: Buffer.from(log) }])
  })

  it('uploads a file, which is a PUT', async () => {
    const log = Buffer.concat([Buffer.from('disk full \xff\n', 'latin1'), Buffer.alloc(2_000, 0x78)])
    expect(await curl(log, ...USUAL, '-T', '-', `${url}/7`)).toEqual({ status: 0, output: 'OK', errors: '' })
    expect(await curl(log, ...USUAL, '-T', '-', '-H', 'Expect: 100-continue', url)).toMatchObject({ status: 0 })
    expect(await stored()).toMatchObject([
      { type: 'fail', exitCode: 7, body: log },
      { type: 'success', body: log },
    ])
  })

  it('says what it has to say in a word', async () => {
    expect((await curl('', ...USUAL, '-D', '-', `${url}?status=killed`)).output).toMatch(
      /^ping-warning: unknown status: the ping counts as a failure; /im,
    )
    expect((await curl('', ...USUAL, `${url}?state=FAIL`)).status).toBe(0)
    expect((await curl('log', ...USUAL, '--data-binary', '@-', `${url}?status=stopped`)).status).toBe(0)
    expect(await stored()).toMatchObject([
      { type: 'fail', body: Buffer.from('unknown status "killed"') },
      { type: 'fail', body: null },
      { type: 'fail', body: Buffer.from('log\nunknown status "stopped"') },
    ])
  })

  it('sends its duration', async () => {
    expect((await curl('', ...USUAL, '-H', 'X-Service-Duration: 1500', url)).status).toBe(0)
    expect(await stored()).toMatchObject([{ durationMs: 1_500 }])
  })

  it('reads the head alone', async () => {
    const { status, output } = await curl('', '-sS', '--head', url)
    expect(status).toBe(0)
    expect(output).toMatch(/^HTTP\/1\.1 200 OK\r\n/)
    expect(output).toMatch(/\r\nPing-Body-Limit: 10240\r\n/)
    expect(await stored()).toHaveLength(1)
  })

  it.each([10_240, 10_241, 100_000, 2_000_000])(
    'learns whether %s bytes are too many, and each ping counts',
    async (length) => {
      const body = Buffer.alloc(length, 'x')
      for (const args of [
        ['--data-binary', '@-'],
        ['-T', '-', '-H', 'Transfer-Encoding: chunked'],
        ['--data-binary', '@-', '-H', 'Expect:'],
      ]) {
        const { status, errors } = await curl(body, ...USUAL, '-X', 'POST', ...args, url)
        if (length <= 10_240) expect({ status, errors }).toEqual({ status: 0, errors: '' })
        else
          expect({ status, errors: errors.trim() }).toEqual({
            status: 22,
            errors: 'curl: (22) The requested URL returned error: 413',
          })
      }
      const kept = length <= 1_048_576 ? { length: Math.min(length, 10_240) } : null
      const ping = { body: kept, isBodyTruncated: length > 10_240 }
      expect(await stored()).toMatchObject([ping, ping, ping])
    },
  )

  it('gives up at once on an unknown check', async () => {
    await using server = await startScriptedServer('unknown', 'unknown', 'unknown', 'unknown')
    const { status, errors } = await curl('', ...USUAL, server.url)
    expect({ status, errors: errors.trim() }).toEqual({
      status: 22,
      errors: 'curl: (22) The requested URL returned error: 404',
    })
    expect(server.pings).toHaveLength(1)
  })

  it('tries again when a ping could not be stored, after the time that we ask for', async () => {
    await using server = await startScriptedServer('unavailable')
    const startedAt = performance.now()
    const { status, output } = await curl('log', ...USUAL, '-X', 'POST', '--data-binary', '@-', server.url)
    expect({ status, output }).toEqual({ status: 0, output: 'OK' })
    expect(performance.now() - startedAt).toBeGreaterThan(4_900)
    expect(server.pings).toMatchObject([{ body: Buffer.from('log') }, { body: Buffer.from('log') }])
  })
})

describe('a wrapper in the manner of runitor', () => {
  const RETRIED = [408, 429, 500, 502, 503, 504]

  /** Retries statuses that may pass, after 10 ms and 20 ms. Any other than 200 is final. */
  async function ping(address: string, body: string): Promise<{ bodyLimit: number | null; tries: number }> {
    for (let tries = 1; ; tries += 1) {
      const response = await fetch(address, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body })
      await response.arrayBuffer()
      if (response.status === 200) {
        const limit = response.headers.get('Ping-Body-Limit')
        return { bodyLimit: limit === null ? null : Number(limit), tries }
      }
      if (!RETRIED.includes(response.status)) throw new Error(`gave up: ${response.status}`)
      if (tries === 3) throw new Error(`gave up after ${tries}: ${response.status}`)
      await new Promise((resolve) => setTimeout(resolve, tries * 10))
    }
  }

  it('starts a run, logs, and completes it with the tail that fits', async () => {
    const rid = randomUUID()
    const { bodyLimit } = await ping(`${url}/start?rid=${rid}`, '')
    expect(bodyLimit).toBe(10_240)
    const output = 'a line of what the job wrote\n'.repeat(1_000)
    await ping(`${url}/log?rid=${rid}`, 'half way')
    await ping(`${url}/3?rid=${rid}`, output.slice(-bodyLimit!))
    expect(await stored()).toMatchObject([
      { type: 'start', runId: rid, body: null },
      { type: 'log', runId: rid, body: Buffer.from('half way') },
      {
        type: 'fail',
        exitCode: 3,
        runId: rid,
        durationMs: expect.any(Number),
        body: Buffer.from(output.slice(-10_240)),
      },
    ])
  })

  it('may ask to create its check, as with other services; that is ignored', async () => {
    await ping(`${url}/0?create=1&rid=${randomUUID()}`, '')
    expect(await stored()).toHaveLength(1)
  })

  it('repeats a ping whose response was lost, and it is stored once', async () => {
    const address = `${url}/0?rid=${randomUUID()}`
    await ping(address, 'done')
    await ping(address, 'done')
    expect(await stored()).toHaveLength(1)
  })

  it('tries again while pings cannot be stored', async () => {
    await using server = await startScriptedServer('unavailable', 'unavailable')
    expect((await ping(`${server.url}/0`, 'done')).tries).toBe(3)
  })

  it('gets the time of the next attempt, in text or in JSON', async () => {
    await using server = await startScriptedServer('unavailable', 'unavailable')
    const plain = await fetch(server.url)
    expect([plain.status, plain.headers.get('Retry-After')]).toEqual([503, '5'])
    expect(await plain.text()).toBe('the ping could not be stored; try again')
    const json = await fetch(server.url, { headers: { Accept: 'application/json' } })
    expect(await json.json()).toEqual({ error: 'the ping could not be stored; try again' })
  })

  it.each([
    ['of 20 KB', 'x'.repeat(20_000), {}],
    ['above a megabyte', 'x'.repeat(1_048_577), {}],
    ['that is compressed', 'x', { 'Content-Encoding': 'gzip' }],
  ])('gets 503, not 413 or 415, when a ping with a body %s could not be stored', async (_, body, headers) => {
    await using server = await startScriptedServer('unavailable')
    const { status } = await fetch(server.url, { method: 'POST', body, headers })
    expect(status).toBe(503)
  })

  it('gets 503 for a fault of the service, so that it tries again', async () => {
    const fault = new Error('a fault of ours')
    await using server = await startScriptedServer('unavailable', fault, fault)
    await expect(ping(server.url, '')).rejects.toThrow('gave up after 3: 503')
    expect(server.faults).toEqual([fault, fault])
  })

  it.each([
    ['an unknown check', () => `${app.pingUrl}/ping/${randomUUID()}/start`, '', 404],
    ['an invalid exit code', () => `${url}/300`, '', 400],
    ['a body that is too large', () => url, 'x'.repeat(10_241), 413],
  ])('gives up on %s', async (_, address, body, status) => {
    await expect(ping(address(), body)).rejects.toThrow(`gave up: ${status}`)
  })
})
