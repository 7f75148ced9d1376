import { unlessAborted } from '../runtime/abort.ts'
import type { CallOptions } from './call.ts'
import type { KubernetesClient } from './client.ts'

/**
 * Returns the same client, whose calls abort with `signal` unless they have a signal of their own. With the signal of a
 * term, the calls and retries of a former leader end before another one leads.
 */
export function limitClient(client: KubernetesClient, signal: AbortSignal): KubernetesClient {
  const within = <O extends CallOptions>(options: O | undefined) =>
    ({ signal, ...options }) as O & { signal: AbortSignal }
  // Without it a request that waits for a socket would end only when it gets one.
  const limit = <T>(call: Promise<T>) => unlessAborted(call, signal)
  return {
    ...client,
    get: (type, name, options) => limit(client.get(type, name, within(options))),
    list: (type, options) => limit(client.list(type, within(options))),
    create: (type, object, options) => limit(client.create(type, object, within(options))),
    replace: (type, object, options) => limit(client.replace(type, object, within(options))),
    apply: (type, object, options) => limit(client.apply(type, object, within(options))),
    mergePatch: (type, name, patch, options) => limit(client.mergePatch(type, name, patch, within(options))),
    delete: (type, name, options) => limit(client.delete(type, name, within(options))),
    raw: (method, path, body, options) => limit(client.raw(method, path, body, within(options))),
  }
}
