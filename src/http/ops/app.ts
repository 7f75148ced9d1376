/** Probes and metrics, for Kubernetes and Prometheus. No probe queries the database. */

import Koa from 'koa'
import { isSameSecret } from '../../runtime/hashes.ts'
import { createMetricsHandler, type MetricsSource } from './metrics.ts'

export interface OpsAppOptions {
  readonly isStarted: () => boolean
  /** Null when ready, else the reason in a few words. */
  readonly whyNotReady: () => string | null
  /** How a ready process is, in a few words. Default: ok. */
  readonly state?: () => string
  /** What a person should know of a ready process besides; null: nothing. */
  readonly remark?: () => string | null
  readonly metrics: MetricsSource
  /** What a client must send to read /metrics. Null: nothing. */
  readonly metricsToken: string | null
  /** Called after each response. `route` is one of ours, or `other`. */
  readonly onRequest: (route: string, method: string, status: number, ms: number) => void
}

const CLIENT_GONE = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

function hasToken(authorization: string, token: string): boolean {
  const [, given] = /^bearer +(\S+) *$/i.exec(authorization) ?? []
  return given !== undefined && isSameSecret(given, token)
}

const ROUTES = ['/livez', '/readyz', '/startupz', '/metrics']

export function createOpsApp(options: OpsAppOptions): Koa {
  const { isStarted, whyNotReady, state = () => 'ok', remark = () => null, metrics, metricsToken, onRequest } = options
  const serveMetrics = createMetricsHandler(metrics)
  const app = new Koa()
  app.silent = true
  app.on('error', (error: { code?: string }) => CLIENT_GONE.has(error.code ?? '') || metrics.onFault(error))
  app.use(async (ctx, next) => {
    const startedAt = performance.now()
    await next()
    onRequest(ROUTES.includes(ctx.path) ? ctx.path : 'other', ctx.method, ctx.status, performance.now() - startedAt)
  })
  app.use(async (ctx) => {
    // Nothing here reads a body. Node would keep what comes while the checks are read.
    ctx.req.resume()
    ctx.set('Cache-Control', 'no-store')
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') {
      ctx.set('Allow', 'GET, HEAD')
      ctx.status = 405
      ctx.body = 'method not allowed: use GET\n'
      return
    }
    switch (ctx.path) {
      case '/livez':
        return respond('ok', true)
      case '/startupz':
        return respond(isStarted() ? 'ok' : 'starting', isStarted())
      case '/readyz': {
        const reason = whyNotReady()
        return respond(reason ?? [state(), remark()].filter((part) => part !== null).join('; '), reason === null)
      }
      case '/metrics':
        if (metricsToken === null || hasToken(ctx.get('Authorization'), metricsToken)) return serveMetrics(ctx)
        ctx.status = 401
        ctx.set('WWW-Authenticate', 'Bearer')
        ctx.body = 'the token is missing or wrong: send the header Authorization: Bearer <METRICS_TOKEN>\n'
        return
      default:
        ctx.status = 404
        ctx.body = 'not found: the paths are /metrics, /livez, /readyz and /startupz\n'
    }

    function respond(text: string, isOk: boolean): void {
      ctx.status = isOk ? 200 : 503
      ctx.body = `${text}\n`
    }
  })
  return app
}
