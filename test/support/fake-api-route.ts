/** Which objects of the fake API server a request is about, and in which version of their kind. */

import type { IncomingMessage } from 'node:http'
import { selectFields, selectLabels } from './fake-api-selectors.ts'
import { type FakeCollection, keyOf, Refused, type Select } from './fake-api-storage.ts'

export interface SeenRequest {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly isWatch: boolean
  readonly isList: boolean
  readonly headers: IncomingMessage['headers']
  readonly body: string
  /** Of the client's certificate; null without one. */
  readonly clientName: string | null
}

export interface Route {
  readonly collection: FakeCollection
  /** `v1`, or `heartbeat-operator.io/v1`: as the path asks for it. */
  readonly apiVersion: string
  /** Null for a list. */
  readonly key: string | null
  readonly select: Select
  readonly namespace: string | undefined
  readonly subresource: string | undefined
}

export function findRoute(request: SeenRequest, collections: ReadonlyMap<string, FakeCollection>): Route {
  const parts = request.path.split('/').slice(1).map(decodeURIComponent)
  const [group, version, ...rest] = parts[0] === 'api' ? ['', ...parts.slice(1)] : parts.slice(1)
  // A Namespace itself is at namespaces/NAME.
  const isInside = rest[0] === 'namespaces' && rest.length > 2
  const [namespace, plural, name, subresource] = isInside ? rest.slice(1) : [undefined, ...rest]
  const collection = collections.get(`${group}/${plural}`)
  if (collection === undefined || version !== collection.type.version)
    throw new Refused(404, 'NotFound', 'the server could not find the requested resource')
  const apiVersion = group === '' ? version! : `${group}/${version}`
  const hasLabels = selectLabels(request.query.get('labelSelector') ?? '')
  const isChosen = selectFields(request.query.get('fieldSelector') ?? '', collection.type)
  const isInScope: Select = ({ metadata }) =>
    (namespace === undefined || metadata.namespace === namespace) && hasLabels(metadata.labels ?? {})
  const select: Select = (object) => isInScope(object) && isChosen(object)
  const key = name === undefined ? null : keyOf({ name, ...(namespace && { namespace }) })
  return { collection, apiVersion, key, select, namespace, subresource }
}

export const REVIEWS = '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'

/** A request that needs the right for which a SelfSubjectAccessReview asks. */
export function requestOfReview(review: SeenRequest): SeenRequest {
  const { verb, group = '', resource, subresource, namespace } = JSON.parse(review.body).spec.resourceAttributes
  const root = group === '' ? '/api/v1' : `/apis/${group}/v1`
  const where = namespace === undefined ? '' : `/namespaces/${namespace}`
  const part = subresource === undefined ? '' : `/any/${subresource}`
  return {
    ...review,
    method: 'GET',
    path: `${root}${where}/${resource}${part}`,
    query: new URLSearchParams(verb === 'watch' ? { watch: '1' } : { limit: '1' }),
    isWatch: verb === 'watch',
    isList: verb === 'list',
    body: '',
  }
}
