import type { CallOptions, KubernetesClient } from '../kubernetes/client.ts'

/**
 * The same client, whose calls end with `signal` where they have none of their own: a term's, so that what a leader had
 * begun, retries included, does not go on when another one leads.
 */
export function limitClient(client: KubernetesClient, signal: AbortSignal): KubernetesClient {
  const within = <O extends CallOptions>(options: O | undefined) =>
    ({ signal, ...options }) as O & { signal: AbortSignal }
  const limit = <T>(call: Promise<T>) => endWith(signal, call)
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

/** At once: a request that waits for a socket hears of the abort only when it gets one, and is then not sent any more. */
function endWith<T>(signal: AbortSignal, call: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const end = () => reject(signal.reason)
    if (signal.aborted) end()
    signal.addEventListener('abort', end, { once: true })
    call.then(resolve, reject).finally(() => signal.removeEventListener('abort', end))
  })
}
