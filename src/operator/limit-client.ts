import type { CallOptions, KubernetesClient } from '../kubernetes/client.ts'

/**
 * The same client, whose calls end with `signal` where they have none of their own: a term's, so that what a leader had
 * begun, retries included, does not go on when another one leads.
 */
export function limitClient(client: KubernetesClient, signal: AbortSignal): KubernetesClient {
  const within = <O extends CallOptions>(options: O | undefined) =>
    ({ signal, ...options }) as O & { signal: AbortSignal }
  return {
    ...client,
    get: (type, name, options) => client.get(type, name, within(options)),
    list: (type, options) => client.list(type, within(options)),
    create: (type, object, options) => client.create(type, object, within(options)),
    replace: (type, object, options) => client.replace(type, object, within(options)),
    apply: (type, object, options) => client.apply(type, object, within(options)),
    mergePatch: (type, name, patch, options) => client.mergePatch(type, name, patch, within(options)),
    delete: (type, name, options) => client.delete(type, name, within(options)),
    raw: (method, path, body, options) => client.raw(method, path, body, within(options)),
  }
}
