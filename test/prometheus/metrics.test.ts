/** What a running service serves at /metrics, judged by promtool, and by what the rules and dashboards ask for. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { findPrometheus } from '../../tools/programs/prometheus-program.ts'
import { type CheckedService, startCheckedService } from './checked-service.ts'
import { type ControllerMetrics, serveControllerMetrics } from './controller-metrics.ts'
import { listQueries, metricsOf, readDashboards } from './read-dashboards.ts'
import { readRules } from './read-rules.ts'

/** What promtool finds, and why it stays. */
const EXPLAINED: Readonly<Record<string, string>> = {
  nodejs_active_handles_total: "prom-client's own name for a gauge; dashboards made for it exist",
  nodejs_active_requests_total: 'the same',
  nodejs_active_resources_total: 'the same',
}

/** Prometheus writes these itself. */
const OF_PROMETHEUS = ['ALERTS']

let promtool: string
let stage: CheckedService
let controller: ControllerMetrics
let served: string

beforeAll(async () => {
  promtool = (await findPrometheus()).promtool
  stage = await startCheckedService()
  controller = await serveControllerMetrics()
  served = await stage.exported()
}, 300_000)
afterAll(async () => {
  await controller?.[Symbol.asyncDispose]()
  await stage?.close()
})

/** What it has against them, a line each; `[]` when nothing. */
async function lint(metrics: string): Promise<string[]> {
  const child = spawn(promtool, ['check', 'metrics'], { stdio: 'pipe' })
  child.stdin.end(metrics)
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return `${out}${error}`.split('\n').filter((line) => line !== '')
}

const unexplained = (lines: readonly string[]) => lines.filter((line) => EXPLAINED[line.split(' ')[0]!] === undefined)

describe('promtool', () => {
  it('finds no fault in what a replica serves that has checks in every status', async () => {
    for (const status of ['new', 'up', 'late', 'down', 'paused'])
      expect(served).toMatch(new RegExp(`^heartbeat_check_status\\{.*status="${status}"\\} 1$`, 'm'))
    expect(unexplained(await lint(served))).toEqual([])
  })

  it('finds no fault in what a controller serves', async () => {
    expect(unexplained(await lint(await controller.text()))).toEqual([])
  })

  it('finds everything that is explained, and would find more', async () => {
    const lines = await lint(`${served}heartbeat_oddity_total 1\n`)
    expect(lines.filter((line) => line.startsWith('heartbeat_oddity_total'))).not.toEqual([])
    for (const name of Object.keys(EXPLAINED)) expect(lines.some((line) => line.startsWith(`${name} `))).toBe(true)
  })
})

describe('each metric', () => {
  /** Names of series by what `# TYPE` says. */
  const seriesOf = (metrics: string) =>
    [...metrics.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name, type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name!],
    )

  it.each([...readRules().map(({ alert, expr }) => ({ name: alert, expr })), ...listQueries(readDashboards())])(
    'of $name is served',
    async ({ expr }) => {
      const known = new Set([...seriesOf(served), ...seriesOf(await controller.text()), ...OF_PROMETHEUS])
      expect(metricsOf(expr)).not.toEqual([])
      expect(metricsOf(expr).filter((name) => !known.has(name))).toEqual([])
    },
  )
})
