/** The real Prometheus, on loopback, with everything of its own. It scrapes once a second. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pickPort } from '../../tools/cluster/control-plane-ports.ts'
import { openHome, quoteLog, startProgram } from '../../tools/cluster/control-plane-process.ts'
import { findPrometheus } from '../../tools/programs/prometheus-program.ts'
import { eventually } from '../support/until.ts'

export interface Sample {
  /** Without the name of the metric. */
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface FiringAlert {
  readonly name: string
  /** Without its name. */
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** When it began, ISO 8601: another time is another alert. */
  readonly activeAt: string
}

export interface Prometheus extends AsyncDisposable {
  readonly url: string
  /** Now; throws what Prometheus has against the expression. */
  query(expr: string): Promise<readonly Sample[]>
  /** The number of series that it has over the last `seconds`. */
  countRange(expr: string, seconds: number): Promise<number>
  /** What fires. */
  alerts(): Promise<readonly FiringAlert[]>
  /** Resolves with what `look` finds; fails with what fired instead. */
  waitFor<T>(what: string, look: () => Promise<T | undefined | false | null>): Promise<T>
}

export interface ScrapeTarget {
  /** As `GET /metrics` is asked: http://127.0.0.1:9090. */
  readonly url: string
  readonly labels: Readonly<Record<string, string>>
}

export interface PrometheusOptions {
  readonly job: string
  readonly targets: readonly ScrapeTarget[]
  /** Text of a rule file. */
  readonly rules: string
}

const PATIENCE_MS = 60_000

/** Started and ready. It ends with the process that started it. */
export async function startPrometheus({ job, targets, rules }: PrometheusOptions): Promise<Prometheus> {
  const { prometheus: path } = await findPrometheus()
  const home = await openHome()
  const port = await pickPort()
  const url = `http://127.0.0.1:${port}`
  const config = join(home.path, 'prometheus.yml')
  await writeFile(join(home.path, 'rules.yaml'), rules)
  // JSON is YAML.
  await writeFile(
    config,
    JSON.stringify({
      global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
      rule_files: ['rules.yaml'],
      scrape_configs: [
        {
          job_name: job,
          honor_labels: true,
          static_configs: targets.map(({ url, labels }) => ({ targets: [new URL(url).host], labels })),
        },
      ],
    }),
  )
  const started = startProgram({
    name: 'prometheus',
    path,
    args: [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(home.path, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    home,
    onLost: () => {},
  })

  async function get<T>(path: string, parameters: Record<string, string> = {}): Promise<T> {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const answer = (await response.json()) as { status: string; error?: string; data: T }
    if (answer.status !== 'success') throw new Error(`${path} ${JSON.stringify(parameters)}: ${answer.error}`)
    return answer.data
  }

  async function alerts(): Promise<readonly FiringAlert[]> {
    type Shown = Omit<FiringAlert, 'name'> & { readonly state: string }
    const { alerts } = await get<{ alerts: Shown[] }>('alerts')
    return alerts
      .filter(({ state }) => state === 'firing')
      .map(({ labels: { alertname, ...labels }, annotations, activeAt }) => ({
        name: alertname!,
        labels,
        annotations,
        activeAt,
      }))
  }

  const waitFor = <T>(what: string, look: () => Promise<T | undefined | false | null>): Promise<T> =>
    eventually(what, look, PATIENCE_MS).catch(async (error) => {
      const firing = JSON.stringify(await alerts().catch(String))
      throw new Error(`${error.message}; what fires is ${firing}`, { cause: error })
    })

  async function dispose(): Promise<void> {
    await started.kill()
    await home.close()
  }

  try {
    await eventually(
      'Prometheus is ready',
      async () => {
        if (started.hasEnded()) throw new Error(`Prometheus ended: ${await quoteLog(started)}`)
        return (await fetch(`${url}/-/ready`).catch(() => null))?.ok
      },
      { withinMs: PATIENCE_MS, retryErrors: false },
    )
  } catch (error) {
    await dispose()
    throw error
  }
  return {
    url,
    alerts,
    waitFor,
    async query(expr) {
      type Vector = { readonly result: readonly { metric: Record<string, string>; value: [number, string] }[] }
      const { result } = await get<Vector>('query', { query: expr })
      return result.map(({ metric: { __name__, ...labels }, value: [, value] }) => ({ labels, value: Number(value) }))
    },
    async countRange(expr, seconds) {
      const now = Date.now() / 1_000
      const range = { start: String(now - seconds), end: String(now), step: '1' }
      return (await get<{ result: unknown[] }>('query_range', { query: expr, ...range })).result.length
    },
    [Symbol.asyncDispose]: dispose,
  }
}
