/** The series of each check in /metrics, of the whole service: what they are, who has them, and what is not in them. */

import { beforeAll, beforeEach, describe, expect, inject, it } from 'vitest'
import { createApp } from '../../../src/app.ts'
import { readConfig } from '../../../src/config/config.ts'
import { startTestApp } from '../../support/app.ts'
import { addCheck } from '../../support/check.ts'
import { silentLog } from '../../support/silent-log.ts'
import { addTenant } from '../../support/tenant.ts'
import { eventually } from '../../support/until.ts'
import { use } from '../../support/use.ts'

const app = use(() => startTestApp({ environment: { METRIC_LABELS: 'team,app.kubernetes.io/part-of' } }))
beforeAll(async () => {
  await eventually('the exporter is active', async () => (await read()).active === '1')
})
beforeEach(() => app.database.query('delete from checks'))

async function read(opsUrl = app.opsUrl) {
  const answer = await fetch(`${opsUrl}/metrics`)
  const text = await answer.text()
  const gauge = (name: string) => new RegExp(`^${name} (\\d+)$`, 'm').exec(text)?.[1]
  return {
    status: answer.status,
    text,
    active: gauge('heartbeat_exporter_active'),
    dropped: gauge('heartbeat_check_series_dropped'),
    samples: text.split('\n').filter((line) => line.startsWith('heartbeat_check_') && line.includes('{')),
    metrics: [...text.matchAll(/^# TYPE (heartbeat_check_\w+)/gm)].map(([, name]) => name),
  }
}

const projectSlug = async () =>
  (await app.database.query<{ slug: string }>('select slug from projects where id = $1', [app.projectId])).rows[0]!.slug

it('tags are no labels of a series, also where METRIC_LABELS names one', async () => {
  await app.createCheck({ slug: 'tagged', tags: ['team', 'env:prod'], labels: { team: 'shop' } })
  const { samples } = await read()
  expect(samples.length).toBeGreaterThan(0)
  const named = new Set(samples.flatMap((line) => [...line.matchAll(/(\w+)="([^"]*)"/g)].map(([, name]) => name)))
  expect([...named].filter((name) => /tag|env/.test(name!))).toEqual([])
  for (const line of samples) expect(line).not.toMatch(/env:prod|tagged="/)
})

describe('the series', () => {
  it('exist as soon as the check is created, and follow its pings', async () => {
    const { publicId } = await app.createCheck({ slug: 'nightly' })
    const labels = `namespace="",project="${await projectSlug()}",check="nightly"`
    /** Values by the name of the series and the labels that it has besides. */
    const shown = async () =>
      Object.fromEntries(
        (await read()).samples.map((line) => {
          const [series = '', value] = line.slice('heartbeat_check_'.length).split(' ')
          return [series.replace(labels, ''), Number(value)]
        }),
      )
    const status = (own: string) =>
      Object.fromEntries(
        ['new', 'up', 'late', 'down', 'paused'].map((one) => [`status{,status="${one}"}`, one === own ? 1 : 0]),
      )
    const spec = {
      'period_seconds{}': 3_600,
      'grace_seconds{}': 300,
      'silenced{}': 0,
      'running{}': 0,
      'flapping{}': 0,
      'warning{}': 0,
    }
    expect(await shown()).toEqual({ ...status('new'), ...spec })

    await fetch(`${app.pingUrl}/ping/${publicId}`, { headers: { 'X-Service-Duration': '2500' } })
    const names = ['last_ping', 'last_success', 'deadline'].map((name) => `${name}_timestamp_seconds{}`)
    const times = Object.fromEntries(names.map((name) => [name, expect.any(Number)]))
    expect(await shown()).toEqual({ 'up{}': 1, ...status('up'), ...times, 'last_duration_seconds{}': 2.5, ...spec })

    await fetch(`${app.pingUrl}/ping/${publicId}/warn`)
    expect(await shown()).toMatchObject({ 'up{}': 1, 'warning{}': 1 })

    await fetch(`${app.pingUrl}/ping/${publicId}/fail`)
    const down = await shown()
    expect(down).toMatchObject({ 'up{}': 0, 'warning{}': 0, ...status('down'), 'down{,reason="failed"}': 1 })
    expect(Object.keys(down).filter((name) => /deadline|duration/.test(name))).toEqual([])
  })

  it('have the labels of METRIC_LABELS that the check has, and no others', async () => {
    const labels = { team: 'shop', 'app.kubernetes.io/part-of': 'web.shop', other: 'not-exported' }
    await app.createCheck({ slug: 'nightly', labels })
    await app.createCheck({ slug: 'weekly', labels: { team: '', 'app.kubernetes.io/part-of': 'x' } })
    const { text, samples } = await read()
    const of = (name: string) => `heartbeat_check_running{namespace="",project="default",check="${name}"`
    expect(samples.filter((sample) => sample.startsWith('heartbeat_check_running'))).toEqual([
      `${of('nightly')},label_team="shop",label_app_kubernetes_io_part_of="web.shop"} 0`,
      `${of('weekly')},label_app_kubernetes_io_part_of="x"} 0`,
    ])
    expect(text).not.toContain('not-exported')
  })

  it('hold no id, no text and no body', async () => {
    const { id, publicId } = await app.createCheck({ name: 'Private name', description: 'private text' })
    await fetch(`${app.pingUrl}/ping/${publicId}/fail`, { method: 'POST', body: 'private body' })
    const { text, samples } = await read()
    expect(samples.length).toBeGreaterThan(8)
    for (const secret of [id, publicId, 'Private', 'private text', 'private body', app.projectId])
      expect(text.includes(secret), 'a secret stands in /metrics').toBe(false)
  })

  it('of a CronJob have the outcome of its newest run, and the time up to which Jobs are recorded, without any controller', async () => {
    const { key } = await addCheck(app, await addTenant(app), { slug: 'nightly', spec: { jobArea: 'default/b' } })
    await app.createCheck({ slug: 'pinged' })
    const seen = /^heartbeat_cronjobs_seen_timestamp_seconds.*$/gm
    await app.database.query(
      `insert into seen_areas (area, cluster, seen_at) values ('default/b', 'default', '2026-11-21T12:00:00Z'),
        ('default/a', 'default', now()), ('default/unused', 'default', '2026-11-21T11:00:00Z'), ('idle', 'idle', now())`,
    )
    expect((await read()).text).not.toMatch(seen)
    await app.database.query(
      `insert into cron_jobs (check_key, name, last_run) values ($1, 'nightly', '{"outcome": "Succeeded"}')`,
      [key],
    )
    const { samples, text } = await read()
    expect(text.match(seen)).toEqual([
      `heartbeat_cronjobs_seen_timestamp_seconds{cluster="default"} ${Date.UTC(2026, 10, 21, 12) / 1_000}`,
    ])
    expect(samples.filter((sample) => sample.startsWith('heartbeat_check_last_run'))).toEqual([
      expect.stringMatching(/check="nightly",outcome="Running"\} 0$/),
      expect.stringMatching(/check="nightly",outcome="Succeeded"\} 1$/),
      expect.stringMatching(/check="nightly",outcome="Warned"\} 0$/),
      expect.stringMatching(/check="nightly",outcome="Failed"\} 0$/),
      expect.stringMatching(/check="nightly",outcome="Deleted"\} 0$/),
    ])
    await app.database.query('delete from seen_areas')
  })

  it('with the same labels in two organizations are exported once, and the other check is counted', async () => {
    await app.createCheck({ slug: 'nightly' })
    const other = await addTenant(app)
    await app.database.query('update projects set slug = $2 where id = $1', [other.project, await projectSlug()])
    for (const slug of ['nightly', 'weekly']) await addCheck(app, other, { slug })
    const { dropped, samples } = await read()
    const running = samples.filter((sample) => sample.startsWith('heartbeat_check_running'))
    expect([dropped, running]).toEqual(['1', ['nightly', 'weekly'].map((name) => expect.stringContaining(`"${name}"`))])
    await app.database.query('delete from checks where project_id = $1', [other.project])
    expect((await read()).dropped).toBe('0')
  })
})

describe('a replica', () => {
  it('that does not export them serves the other metrics', async () => {
    await app.createCheck()
    const { rows } = await app.database.query<{ name: string }>('select current_database() as name')
    await using second = await startReplica(rows[0]!.name)
    expect(await read(second.opsUrl)).toMatchObject({ status: 200, active: '0', dropped: '0', samples: [] })
    expect((await read()).active).toBe('1')
    expect((await read(second.opsUrl)).text).toMatch(/^heartbeat_checks\{status="new"\} 1$/m)
  })

  it('that cannot read them serves the other metrics', async () => {
    await app.createCheck()
    expect((await read()).metrics).toHaveLength(15)
    await app.database.query('alter table exporter rename to exporter_away')
    try {
      const away = await read()
      expect(away).toMatchObject({ status: 200, active: '0', dropped: '0', samples: [] })
      expect(away.metrics).toEqual(['heartbeat_check_series_dropped'])
      expect(away.text).toMatch(/^heartbeat_checks\{status="new"\} 1$/m)
    } finally {
      await app.database.query('alter table exporter_away rename to exporter')
    }
    expect((await read()).samples.length).toBeGreaterThan(5)
  })
})

/** A second replica on the first one's database. */
async function startReplica(database: string) {
  const secretKey = Buffer.alloc(32, 7)
  const url = new URL(inject('postgresUrl'))
  url.pathname = `/${database}`
  const config = readConfig(
    {
      PING_PORT: '0',
      API_PORT: '0',
      OPS_PORT: '0',
      DATABASE_URL: url.href,
      SECRET_KEY: secretKey.toString('base64'),
    },
    false,
  )
  const replica = createApp({ config, databaseUrl: url.href, secretKey, log: silentLog })
  const { ops } = await replica.start()
  return { opsUrl: ops, [Symbol.asyncDispose]: () => replica.stop() }
}
