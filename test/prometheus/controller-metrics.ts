/**
 * /metrics of a controller that leads, without a cluster: the same registrations as in src/app.ts and src/roles/controller.ts, and
 * some of what happens there.
 */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createKubernetesMetrics } from '../../src/kubernetes/metrics.ts'
import { LEASE_NAME } from '../../src/operator/names.ts'
import { createMetrics } from '../../src/roles/metrics.ts'

export interface ControllerMetrics extends AsyncDisposable {
  readonly url: string
  text(): Promise<string>
}

export async function serveControllerMetrics(): Promise<ControllerMetrics> {
  const { registry } = createMetrics()
  const metrics = createKubernetesMetrics(registry)
  metrics.leading(LEASE_NAME, true)
  const queue = metrics.queue(LEASE_NAME)
  queue.begin(() => ({ unfinishedSeconds: 0, longestSeconds: 0 }))
  const workers = metrics.workers(LEASE_NAME, 4)
  const reflector = metrics.reflector('heartbeatchecks')
  reflector.objects(3)
  const text = () => {
    queue.added()
    queue.waited(0.001)
    workers.reconciled('success', 0.02)
    reflector.contact(Date.now())
    metrics.requests.request('get', 'GET', '127.0.0.1:6443', '200', 0.01)
    return registry.metrics()
  }
  const server = createServer(async (_, response) => {
    response.setHeader('Content-Type', registry.contentType)
    response.end(await text())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    text,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}
