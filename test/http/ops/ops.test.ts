/** The ops port: probes and metrics (design, sections 8 and 11). */

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { PING_TYPES, SHOWN_STATUSES } from '../../../src/domain/check.ts'
import { PING_WARNINGS } from '../../../src/http/ping/request.ts'
import { startTestApp } from '../../support/app.ts'
import { exchange, writeHead, writePost } from '../../support/http.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'

/** As they were before anything happened. */
let atStart: Map<string, number>

const app = use(startTestApp)
beforeAll(async () => {
  atStart = await readMetrics()
})

const get = (path: string, ...headers: string[]) => exchange(app.opsUrl, writeHead('GET', path, ...headers))

/** It comes in chunks, which `exchange` does not read. */
async function getMetrics() {
  const answer = await fetch(`${app.opsUrl}/metrics`)
  return { status: answer.status, type: answer.headers.get('content-type'), text: await answer.text() }
}

/** Series to value, by their whole text: `name{label="value"}`. */
async function readMetrics(): Promise<Map<string, number>> {
  const { text } = await getMetrics()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

async function ping(rest: string): Promise<void> {
  await exchange(app.pingUrl, writeHead('GET', `/ping/${rest}`))
}

describe('a probe', () => {
  it.each(['/livez', '/readyz', '/startupz'])('%s is ok in plain text and not cacheable', async (path) => {
    const { status, text, headers } = await get(path)
    expect({ status, text }).toEqual({ status: 200, text: 'ok\n' })
    expect(headers).toMatchObject({ 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
  })

  it.each(['/livez', '/metrics'])('accepts HEAD for %s', async (path) => {
    const { status, body } = await exchange(app.opsUrl, writeHead('HEAD', path))
    expect({ status, length: body.length }).toEqual({ status: 200, length: 0 })
  })

  it('rejects other paths and methods', async () => {
    expect((await get('/healthz')).status).toBe(404)
    const { status, headers } = await exchange(app.opsUrl, writePost('/livez', 'x'))
    expect({ status, allow: headers.allow }).toEqual({ status: 405, allow: 'GET, HEAD' })
  })

  it('needs no credential, and exists on no other port', async () => {
    for (const url of [app.pingUrl, new URL(app.apiUrl).origin]) {
      expect((await exchange(url, writeHead('GET', '/livez'))).status).toBe(404)
      expect((await exchange(url, writeHead('GET', '/metrics'))).status).toBe(404)
    }
  })
})

describe('readiness', () => {
  it('fails while the service cannot write its beat, and recovers; liveness stays', async () => {
    await using own = await startTestApp()
    const probe = async (path: string) => (await fetch(own.opsUrl + path)).status
    await own.database.query('alter table service_beat rename to service_beat_away')
    await eventually('it is not ready', async () => (await probe('/readyz')) === 503)
    expect(await probe('/livez')).toBe(200)
    expect(await probe('/startupz')).toBe(200)
    expect(await probe('/metrics')).toBe(200)
    await own.database.query('alter table service_beat_away rename to service_beat')
    await eventually('it is ready', async () => (await probe('/readyz')) === 200)
  })
})

describe('/metrics', () => {
  it('is in the text format of Prometheus', async () => {
    const { status, type, text } = await getMetrics()
    expect(status).toBe(200)
    expect(type).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect(text).toMatch(/^# HELP process_cpu_seconds_total /m)
    expect(text.endsWith('\n')).toBe(true)
  })

  it('explains each of its metrics', async () => {
    const { text } = await getMetrics()
    const types = [...text.matchAll(/^# TYPE (\S+) (counter|gauge|histogram)$/gm)].map(([, name]) => name)
    const helps = [...text.matchAll(/^# HELP (\S+) \S+/gm)].map(([, name]) => name)
    expect(helps).toEqual(types)
    expect(types.filter((name) => name!.startsWith('heartbeat_')).length).toBeGreaterThan(10)
  })

  it('has all label sets at zero from the start', () => {
    const zeros = [
      ...PING_TYPES.flatMap((type) =>
        ['stored', 'duplicate', 'not_found', 'unavailable', 'body_too_large', 'body_compressed'].map(
          (result) => `heartbeat_pings_total{type="${type}",result="${result}"}`,
        ),
      ),
      ...['not_found', 'unknown_signal', 'invalid_exit_code', 'wrong_method'].map(
        (result) => `heartbeat_pings_total{type="unknown",result="${result}"}`,
      ),
      ...Object.keys(PING_WARNINGS).map((warning) => `heartbeat_ping_warnings_total{warning="${warning}"}`),
      ...['missed', 'overran', 'outage', 'resumed'].map((reason) => `heartbeat_flips_total{reason="${reason}"}`),
      ...SHOWN_STATUSES.map((status) => `heartbeat_checks{status="${status}"}`),
      ...['beat', 'expire', 'clock', 'prune', 'known_checks'].map(
        (loop) => `heartbeat_loop_failures_total{loop="${loop}"}`,
      ),
      'heartbeat_ping_commit_seconds_count',
      'heartbeat_deadline_detection_seconds_count',
    ]
    expect(zeros.filter((series) => atStart.get(series) !== 0)).toEqual([])
  })

  it('times the requests of all three servers by route', async () => {
    const { publicId } = await app.createCheck()
    await fetch(`${app.pingUrl}/ping/${publicId}`)
    await readMetrics()
    const series = await readMetrics()
    for (const labels of [
      'server="ping",route="/ping/{public_id}",method="GET",status="200"',
      'server="api",route="/api/v1/checks",method="POST",status="201"',
      'server="ops",route="/metrics",method="GET",status="200"',
    ]) {
      expect(series.get(`heartbeat_http_request_seconds_count{${labels}}`), labels).toBeGreaterThan(0)
    }
  })

  it('moves with pings', async () => {
    const { publicId } = await app.createCheck()
    const before = await readMetrics()
    const rid = randomUUID()
    await ping(`${publicId}/start?rid=${rid}`)
    await ping(`${publicId}/start?rid=${rid}`)
    await ping(`${publicId}?duration=soon&rid=${rid}`)
    await ping(`${publicId}/1`)
    await ping(`${publicId}/256`)
    await ping(`${randomUUID()}/log`)
    await ping('nonsense')
    await exchange(app.pingUrl, writeHead('PATCH', `/ping/${publicId}`))
    await exchange(app.pingUrl, writePost(`/ping/${publicId}/fail`, 'x'.repeat(10_241)))
    await exchange(app.pingUrl, writePost(`/ping/${publicId}/log`, 'x', 'Content-Encoding: gzip'))
    const after = await readMetrics()
    const moved = Object.fromEntries(
      [...after]
        .filter(([series]) => /^heartbeat_ping(s|_warnings)_total/.test(series))
        .flatMap(([series, value]) => {
          const by = value - (before.get(series) ?? 0)
          return by === 0 ? [] : [[series, by]]
        }),
    )
    expect(moved).toEqual({
      'heartbeat_pings_total{type="start",result="stored"}': 1,
      'heartbeat_pings_total{type="start",result="duplicate"}': 1,
      'heartbeat_pings_total{type="success",result="stored"}': 1,
      'heartbeat_pings_total{type="fail",result="stored"}': 1,
      'heartbeat_pings_total{type="unknown",result="invalid_exit_code"}': 1,
      'heartbeat_pings_total{type="log",result="not_found"}': 1,
      'heartbeat_pings_total{type="unknown",result="not_found"}': 1,
      'heartbeat_pings_total{type="unknown",result="wrong_method"}': 1,
      'heartbeat_pings_total{type="fail",result="body_too_large"}': 1,
      'heartbeat_pings_total{type="log",result="body_compressed"}': 1,
      'heartbeat_ping_warnings_total{warning="duration_invalid"}': 1,
    })
    expect(after.get('heartbeat_ping_commit_seconds_count')).toBeGreaterThan(0)
  })

  it('counts checks by the status that people see', async () => {
    const count = async (status: string) => (await readMetrics()).get(`heartbeat_checks{status="${status}"}`)!
    const before = { new: await count('new'), up: await count('up') }
    const { publicId } = await app.createCheck({ name: 'Counted' })
    expect(await count('new')).toBe(before.new + 1)
    await ping(publicId)
    expect({ new: await count('new'), up: await count('up') }).toEqual({ new: before.new, up: before.up + 1 })
  })

  it('has the age of the oldest overdue deadline, also while another gauge cannot be read', async () => {
    const { id } = await app.createCheck({ name: 'Overdue' })
    // Until the evaluator, which runs four times a second, puts it right.
    const setOverdue = () =>
      app.database.query(
        `update check_states s set wake_at = now() - interval '40 seconds' from checks c where c.key = s.check_key and c.id = $1`,
        [id],
      )
    const overdue = async () => (await readMetrics()).get('heartbeat_deadline_oldest_overdue_seconds')!
    expect(await overdue()).toBe(0)
    await app.database.query('alter table deliveries rename to deliveries_away')
    try {
      await eventually('the age is more than 39 s', async () => {
        await setOverdue()
        return (await overdue()) > 39
      })
    } finally {
      await app.database.query('alter table deliveries_away rename to deliveries')
      await app.database.query('update check_states set wake_at = null')
    }
  })

  it('counts management calls by their route, never by their path', async () => {
    const { id } = await app.createCheck({ name: 'Called' })
    const counts = async () => {
      const metrics = await readMetrics()
      return [
        'route="/api/v1/checks/{id}",method="GET",status="200"',
        'route="unmatched",method="GET",status="404"',
      ].map((labels) => metrics.get(`heartbeat_http_request_seconds_count{server="api",${labels}}`) ?? 0)
    }
    const [matched = 0, unmatched = 0] = await counts()
    await app.client.get(`/checks/${id}`)
    await app.client.get(`/nowhere/${id}`)
    expect(await counts()).toEqual([matched + 1, unmatched + 1])
  })

  it('contains no id, key, address or text of a job', async () => {
    const { id, publicId } = await app.createCheck({ name: 'Secret name', slug: 'slug', description: 'secret' })
    const rid = randomUUID()
    await exchange(
      app.pingUrl,
      writePost(`/ping/${publicId}/fail?rid=${rid}`, 'secret text', 'User-Agent: secret-agent'),
    )
    await exchange(app.pingUrl, writeHead('SEARCH', `/ping/${publicId}`))
    await app.client.get(`/checks/${id}`)
    await app.client.post('/auth/login', app.logIn, { key: null })
    const { text } = await getMetrics()
    const secrets = [
      id,
      publicId,
      publicId.slice(0, 8),
      rid,
      app.apiKey,
      app.projectId,
      app.logIn.email,
      app.logIn.password,
    ]
    for (const secret of [...secrets, 'secret'])
      expect(text.includes(secret), 'a secret stands in /metrics').toBe(false)
    expect(text).not.toMatch(/[0-9a-f]{8}-[0-9a-f]{4}-/)
  })
})
