/** Servers of one port of the service, with what a test gives and nothing behind them. Each part takes overrides. */

import type { RequestListener } from 'node:http'
import { expect } from 'vitest'
import { createOpsApp, type OpsAppOptions } from '../../src/http/ops/app.ts'
import { createPingApp, type PingAppOptions } from '../../src/http/ping/app.ts'
import { createHttpServer, type HttpServer, type HttpServerOptions } from '../../src/http/server.ts'

/** On a free port of loopback. */
export async function serve(
  options: Partial<HttpServerOptions> & Pick<HttpServerOptions, 'handler'>,
): Promise<Omit<HttpServer, 'listen'> & AsyncDisposable & { readonly url: string }> {
  const server = createHttpServer({
    name: 'test',
    bindAddress: '127.0.0.1',
    port: 0,
    errorText: (text) => ({ type: 'text/plain; charset=utf-8', text }),
    ...options,
  })
  const { port } = await server.listen()
  return { url: `http://127.0.0.1:${port}`, close: server.close, [Symbol.asyncDispose]: () => server.close(0) }
}

/** Stores each ping of any check. */
export const aPingApp = (options: Partial<PingAppOptions> = {}): RequestListener =>
  createPingApp({
    record: async () => 'stored',
    hasCheck: async () => true,
    find: { byName: async () => null, byToken: async () => null },
    now: () => 0,
    processNow: () => 0,
    onPing: () => {},
    onRequest: () => {},
    onWarning: () => {},
    onError: (error) => expect(error).toBeUndefined(),
    ...options,
  })

/** Is ready, and has one metric and no check. */
export const anOpsApp = (
  metrics: Partial<OpsAppOptions['metrics']> = {},
  options: Partial<Omit<OpsAppOptions, 'metrics'>> = {},
): RequestListener =>
  createOpsApp({
    isStarted: () => true,
    whyNotReady: () => null,
    metricsToken: null,
    onRequest: () => {},
    metrics: {
      contentType: 'text/plain',
      readChecks: async () => false,
      render: async () => 'a 1\n',
      onFault: (error) => expect(error).toBeUndefined(),
      ...metrics,
    },
    ...options,
  }).callback()
