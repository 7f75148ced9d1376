/** How /metrics is answered, whatever it says: compressed or not, in pieces, one at a time, and to clients of every kind. */

import { randomUUID } from 'node:crypto'
import { gunzipSync } from 'node:zlib'
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { ExportedCheck } from '../../../src/checks/export-checks.ts'
import type { ShownStatus } from '../../../src/domain/check.ts'
import type { MetricsSource } from '../../../src/http/ops/metrics.ts'
import { fakeTimers } from '../../support/fake-timers.ts'
import { getRaw, openConnection, writeHead } from '../../support/http.ts'
import { anOpsApp, serve } from '../../support/servers.ts'
import { eventually, settle } from '../../support/until.ts'

const TYPE = 'text/plain; version=0.0.4; charset=utf-8'
/** Some 20 MB of text: far more than sockets take before a client reads. */
const MANY = 12_000

let calls: string[] = []
const faults: unknown[] = []
afterEach(() => {
  calls = []
  // A test that expects some takes them.
  expect(faults.splice(0)).toEqual([])
})

function exportSome(count: number): MetricsSource['readChecks'] {
  return async (add) => {
    calls.push('read')
    for (let number = 0; number < count; number += 1) add(aCheck(`job-${number}`))
    return true
  }
}

function aCheck(name: string): ExportedCheck {
  return {
    namespace: 'shop',
    project: 'payments',
    name,
    cluster: null,
    status: 'new',
    downReason: null,
    lastPingAt: null,
    lastSuccessAt: null,
    deadlineAt: null,
    lastDurationMs: null,
    periodSeconds: 60,
    graceSeconds: 60,
    isRunning: false,
    isFlapping: false,
    isWarning: false,
    isSilenced: false,
    labels: [],
  }
}

async function startOps(overrides: Partial<MetricsSource> = {}, metricsToken: string | null = null): Promise<string> {
  const metrics: Partial<MetricsSource> = {
    contentType: TYPE,
    readChecks: exportSome(3),
    render: async ({ isActive, dropped }) => {
      calls.push('render')
      return `active ${isActive}\ndropped ${dropped}\n`
    },
    onFault: (error) => faults.push(error),
    ...overrides,
  }
  const onRequest = (_route: string, method: string, status: number) => calls.push(`${method} ${status}`)
  const { url, close } = await serve({ handler: anOpsApp(metrics, { metricsToken, onRequest }) })
  onTestFinished(() => close(0))
  return url
}

const ask = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
  getRaw(`${url}/metrics`, headers, method)

const countSamples = (text: string) => text.match(/^heartbeat_check_grace_seconds\{/gm)?.length ?? 0

describe('GET /metrics', () => {
  it('returns the metrics of the process, then the series of each check', async () => {
    const url = await startOps()
    const { status, headers, body } = await ask(url)
    expect({ status, type: headers['content-type'], vary: headers.vary }).toEqual({
      status: 200,
      type: TYPE,
      vary: 'Accept-Encoding',
    })
    const text = body.toString()
    expect(text).toMatch(/^active true\ndropped 0\n# HELP heartbeat_check_up /)
    expect(countSamples(text)).toBe(3)
    expect(calls).toEqual(['read', 'render', 'GET 200'])
  })

  it('counts the checks that are left out', async () => {
    const url = await startOps({
      async readChecks(add) {
        for (const name of ['a', 'a', 'a', 'b']) add(aCheck(name))
        return true
      },
    })
    expect((await ask(url)).body.toString()).toMatch(/^active true\ndropped 2\n/)
  })

  it('returns no check when this replica does not export them', async () => {
    const url = await startOps({
      async readChecks(add) {
        for (const name of ['a', 'a', 'b']) add(aCheck(name))
        return false
      },
    })
    expect((await ask(url)).body.toString()).toBe('active false\ndropped 0\n')
  })

  it.each([
    [undefined, false],
    ['gzip', true],
    ['GZIP', true],
    ['gzip, deflate, br, zstd', true],
    ['deflate;q=1.0, gzip;q=0.5', true],
    ['*', true],
    ['', false],
    ['identity', false],
    ['deflate, br', false],
    ['gzip;q=0', false],
    ['*;q=0.5, gzip;q=0', false],
    ['gzip;q=0.1, identity;q=0.5', false],
    ['identity;q=0.1, gzip;q=0.2', true],
  ])('to Accept-Encoding %j is compressed: %s', async (accepted, isCompressed) => {
    const url = await startOps()
    const { status, headers, body } = await ask(url, accepted === undefined ? {} : { 'Accept-Encoding': accepted })
    expect({ status, encoding: headers['content-encoding'] }).toEqual({
      status: 200,
      encoding: isCompressed ? 'gzip' : undefined,
    })
    expect(countSamples((isCompressed ? gunzipSync(body) : body).toString())).toBe(3)
  })

  it('is complete when it is large, compressed or not', async () => {
    const url = await startOps({ readChecks: exportSome(MANY) })
    const plain = (await ask(url)).body
    expect(countSamples(plain.toString())).toBe(MANY)
    const compressed = (await ask(url, { 'Accept-Encoding': 'gzip' })).body
    expect(gunzipSync(compressed).equals(plain)).toBe(true)
    expect(compressed.length).toBeLessThan(plain.length / 10)
  })

  it('responds to HEAD with the headers, and reads nothing', async () => {
    const url = await startOps()
    const { status, headers, body } = await ask(url, { 'Accept-Encoding': 'gzip' }, 'HEAD')
    expect({ status, length: body.length }).toEqual({ status: 200, length: 0 })
    expect(headers).toMatchObject({ 'content-type': TYPE, 'content-encoding': 'gzip', vary: 'Accept-Encoding' })
    expect(calls).toEqual(['HEAD 200'])
  })

  it('returns an error when the metrics cannot be read, and the next request succeeds', async () => {
    let isBroken = true
    const url = await startOps({
      async render() {
        if (isBroken) throw new Error('a fault of ours')
        return 'fine\n'
      },
    })
    const { status, headers, body } = await ask(url, { 'Accept-Encoding': 'gzip' })
    expect({ status, encoding: headers['content-encoding'] }).toEqual({ status: 500, encoding: undefined })
    expect(body.toString()).not.toContain('a fault of ours')
    expect(faults.splice(0)).toMatchObject([{ message: 'a fault of ours' }])
    isBroken = false
    expect((await ask(url)).body.toString()).toMatch(/^fine\n/)
  })

  it.each(['gzip', 'identity'])(
    '(%s) that breaks off in the middle is cut, the cause is reported, and the next one is made',
    async (accepted) => {
      let isBroken = true
      const url = await startOps({
        async readChecks(add) {
          // Not to be compressed to a few bytes: some must be on their way when it breaks off.
          for (let number = 0; number < MANY; number += 1) add({ ...aCheck(`job-${randomUUID()}`), status: 'up' })
          // Added like any other; found out when it is written.
          if (isBroken) add({ ...aCheck('odd'), status: 'unheard of' as ShownStatus })
          return true
        },
      })
      await expect(ask(url, { 'Accept-Encoding': accepted })).rejects.toMatchObject({ code: 'ECONNRESET' })
      expect(faults.splice(0)).toEqual([expect.any(TypeError)])
      isBroken = false
      expect((await ask(url, { 'Accept-Encoding': accepted })).status).toBe(200)
    },
  )
})

/** Resolves when nothing more is written: the client reads nothing, and the kernel takes no more. Counts our timers, which are fakes. */
async function untilStalled(): Promise<void> {
  for (let quiet = 0; quiet < 300; ) {
    const before = vi.getTimerCount()
    await settle()
    quiet = before === 2 && vi.getTimerCount() === 2 ? quiet + 1 : 0
  }
}

/** A scrape whose client reads nothing. */
function openIdle(url: string, ...headers: string[]) {
  const connection = openConnection(url)
  onTestFinished(() => void connection.socket.destroy())
  connection.socket.pause()
  connection.send(writeHead('GET', '/metrics', ...headers))
  return connection
}

describe('of several clients', () => {
  it('up to three share what one has read, a fourth is 503 with Retry-After: 1, and the next reads again', async () => {
    const gate = Promise.withResolvers<void>()
    let reads = 0
    const url = await startOps({
      async readChecks(add) {
        reads += 1
        await gate.promise
        add(aCheck(`job-${reads}`))
        return true
      },
    })
    const sharing = [ask(url), ask(url), ask(url)]
    await eventually('one scrape reads', () => reads === 1)
    // A response to something else shows that all three have arrived.
    expect((await fetch(`${url}/livez`)).status).toBe(200)
    const { status, headers, body } = await ask(url)
    expect({ status, retryAfter: headers['retry-after'] }).toEqual({ status: 503, retryAfter: '1' })
    expect(body.toString()).toBe('3 scrapes are being served: try again in a second\n')
    gate.resolve()
    for (const { status, body } of await Promise.all(sharing)) {
      expect(status).toBe(200)
      expect(body.toString()).toContain('job-1')
    }
    expect(reads).toBe(1)
    expect((await ask(url)).body.toString()).toContain('job-2')
  })

  it('each has its own pace: one that reads nothing delays no other', async () => {
    const url = await startOps({ readChecks: exportSome(MANY), idleMs: 60_000 })
    openIdle(url)
    openIdle(url)
    await eventually('the answer is rendered', () => calls.includes('render'))
    for (let scrape = 0; scrape < 2; scrape += 1) expect(countSamples((await ask(url)).body.toString())).toBe(MANY)
  })

  it('one that comes after the checks were read reads them again', async () => {
    const url = await startOps({ readChecks: exportSome(MANY), idleMs: 60_000 })
    openIdle(url)
    await eventually('the answer is rendered', () => calls.includes('render'))
    await ask(url)
    expect(calls.filter((call) => call === 'read')).toHaveLength(2)
  })

  it('one that goes away in the middle ends the work, and gives its place back', async () => {
    const url = await startOps({ readChecks: exportSome(MANY), writeMs: 60_000, idleMs: 60_000 })
    for (let scrape = 0; scrape < 4; scrape += 1) {
      const connection = openConnection(url)
      connection.send(writeHead('GET', '/metrics'))
      await new Promise((resolve) => connection.socket.once('data', resolve))
      connection.socket.pause()
      connection.socket.destroy()
      await eventually('the next scrape is answered', () => calls.filter((call) => call === 'GET 200').length > scrape)
    }
    expect(countSamples((await ask(url)).body.toString())).toBe(MANY)
  })

  it.each(['gzip', 'identity'])(
    '(%s) one that resets its connection in the middle is no fault of ours',
    async (accepted) => {
      const url = await startOps({ readChecks: exportSome(MANY), writeMs: 60_000 })
      const connection = openConnection(url)
      connection.socket.on('data', () => connection.socket.resetAndDestroy())
      connection.send(writeHead('GET', '/metrics', `Accept-Encoding: ${accepted}`))
      await eventually('the scrape is answered', () => calls.includes('GET 200'))
      expect((await ask(url, {}, 'HEAD')).status).toBe(200)
      expect(faults).toEqual([])
    },
  )

  it.each([
    [undefined, 10_000],
    ['0.3', 300],
    ['60', 60_000],
    ['61', 60_000],
    ['0', 10_000],
    ['soon', 10_000],
  ])('one that says that it waits for %s s is cut off after %d ms, and not before', async (seconds, limitMs) => {
    const headers = seconds === undefined ? [] : [`X-Prometheus-Scrape-Timeout-Seconds: ${seconds}`]
    const url = await startOps({ readChecks: exportSome(MANY), idleMs: 600_000 })
    fakeTimers()
    const connection = openIdle(url, ...headers)
    await untilStalled()
    vi.advanceTimersByTime(limitMs - 1)
    expect(vi.getTimerCount()).toBe(2)
    vi.advanceTimersByTime(1)
    vi.useRealTimers()
    await eventually('the scrape is answered', () => calls.includes('GET 200'))
    connection.socket.resume()
    const { rest } = await connection.ended
    expect(rest.endsWith('0\r\n\r\n')).toBe(false)
  })

  it('one that reads nothing is cut off after two seconds, and not before', async () => {
    const url = await startOps({ readChecks: exportSome(MANY) })
    fakeTimers()
    const connection = openIdle(url, 'X-Prometheus-Scrape-Timeout-Seconds: 60')
    await untilStalled()
    vi.advanceTimersByTime(1_999)
    expect(vi.getTimerCount()).toBe(2)
    vi.advanceTimersByTime(1)
    vi.useRealTimers()
    await eventually('the scrape is answered', () => calls.includes('GET 200'))
    connection.socket.resume()
    const { rest } = await connection.ended
    expect(rest.endsWith('0\r\n\r\n')).toBe(false)
  })
})

describe('with METRICS_TOKEN', () => {
  it.each([
    [undefined, 401],
    ['Bearer ', 401],
    ['Bearer other', 401],
    ['Bearer secret-token2', 401],
    ['Basic secret-token', 401],
    ['secret-token', 401],
    ['Bearer secret-token', 200],
    ['bearer  secret-token', 200],
  ])('the header Authorization: %s is %d', async (authorization, expected) => {
    const url = await startOps({}, 'secret-token')
    const { status, headers } = await ask(url, authorization === undefined ? {} : { Authorization: authorization })
    expect([status, headers['www-authenticate']]).toEqual([expected, expected === 401 ? 'Bearer' : undefined])
  })

  it('HEAD needs it too, the probes do not', async () => {
    const url = await startOps({}, 'secret-token')
    expect((await ask(url, {}, 'HEAD')).status).toBe(401)
    expect(calls).toEqual(['HEAD 401'])
    for (const probe of ['livez', 'readyz', 'startupz']) expect((await fetch(`${url}/${probe}`)).status).toBe(200)
  })
})
