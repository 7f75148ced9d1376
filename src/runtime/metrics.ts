/** Metrics, how they are made, and those of the machinery. No label takes a value that a caller can invent. */

import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

export type { Counter, Histogram, Registry }
export { Gauge }

export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/** A registry with Node's own metrics. */
export function createRegistry(): Registry {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  return registry
}

/** The values that each label can take, as far as they are known at the start. */
type Labels<Name extends string> = Readonly<Record<Name, readonly string[]>>

/** Each combination of label values exists at zero from the start: a rate over the first occurrence is right. */
export function metricsOn(registry: Registry) {
  const registers = [registry]
  return {
    counter<Name extends string = never>(name: string, help: string, labels = {} as Labels<Name>): Counter<Name> {
      const counter = new Counter<Name>({ name, help, labelNames: namesOf(labels), registers })
      for (const combination of combine(labels)) counter.inc(combination, 0)
      return counter
    },
    gauge<Name extends string = never>(name: string, help: string, labels = {} as Labels<Name>): Gauge<Name> {
      const gauge = new Gauge<Name>({ name, help, labelNames: namesOf(labels), registers })
      for (const combination of combine(labels)) gauge.set(combination, 0)
      return gauge
    },
    histogram<Name extends string = never>(
      name: string,
      help: string,
      labelNames: readonly Name[] = [],
      buckets: readonly number[] = SECONDS,
    ): Histogram<Name> {
      return new Histogram<Name>({ name, help, labelNames: [...labelNames], buckets: [...buckets], registers })
    },
  }
}

function namesOf<Name extends string>(labels: Labels<Name>): Name[] {
  return Object.keys(labels) as Name[]
}

/** Every combination of one value for each label. */
function combine<Name extends string>(labels: Labels<Name>): Record<Name, string>[] {
  return namesOf(labels).reduce(
    (combinations, name) =>
      combinations.flatMap((combination) => labels[name].map((value) => ({ ...combination, [name]: value }))),
    [{} as Record<Name, string>],
  )
}

export type MachineryMetrics = ReturnType<typeof createMachineryMetrics>

export function createMachineryMetrics(registry: Registry) {
  const { counter, histogram } = metricsOn(registry)
  return {
    httpSeconds: histogram(
      'heartbeat_http_request_seconds',
      'Time from receiving an HTTP request to sending its response',
      ['server', 'route', 'method', 'status'],
    ),
    loopFailures: counter('heartbeat_loop_failures_total', 'Failed runs of a background loop', { loop: [] }),
  }
}

const KNOWN_METHODS = new Set(['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Callers can invent methods: an unknown one is counted as `other`. */
export function observeHttp(
  { httpSeconds }: Pick<MachineryMetrics, 'httpSeconds'>,
  labels: { server: string; route: string; method: string; status: string },
  seconds: number,
): void {
  httpSeconds.observe({ ...labels, method: KNOWN_METHODS.has(labels.method) ? labels.method : 'other' }, seconds)
}
