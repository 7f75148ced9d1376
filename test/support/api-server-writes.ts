/** Of what the operator writes; the Lease, which is renewed all the time, is not among it. */
const RESOURCES = new Set(['heartbeatchecks', 'secrets', 'configmaps', 'events'])
/** What a controller asks for; not the Lease, which is renewed all the time. */
export const ASKED = ['cronjobs', 'jobs', 'pods', 'events', 'heartbeatchecks', 'namespaces', 'secrets', 'configmaps']
const READS = new Set(['GET', 'LIST', 'WATCH'])

/**
 * What an API server was asked to write since its start, by any client and whatever it answered: `PUT heartbeatchecks/status 200`
 * and how often. `metrics` is what its /metrics says.
 */
export function readWrites(metrics: string): Record<string, number> {
  return readRequests(metrics, (verb, resource) => RESOURCES.has(resource) && !READS.has(verb))
}

/** The same of all requests that are chosen. A watch counts when it ends. */
export function readRequests(
  metrics: string,
  isChosen: (verb: string, resource: string) => boolean,
): Record<string, number> {
  const requests: Record<string, number> = {}
  for (const [, text, count] of metrics.matchAll(/^apiserver_request_total\{(.*)\} (\S+)$/gm)) {
    const labels = Object.fromEntries([...text!.matchAll(/(\w+)="([^"]*)"/g)].map(([, name, value]) => [name, value]))
    const { verb, resource, subresource, code } = labels as Record<string, string>
    if (!isChosen(verb!, resource!)) continue
    const key = `${verb} ${[resource, subresource].filter(Boolean).join('/')} ${code}`
    requests[key] = (requests[key] ?? 0) + Number(count)
  }
  return requests
}
