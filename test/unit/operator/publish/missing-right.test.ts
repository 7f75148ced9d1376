import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../../src/kubernetes/errors.ts'
import { describeGrant } from '../../../../src/operator/publish/missing-right.ts'

const rejection = (message: string, status = 403) =>
  new ApiError({ request: 'r', status, reason: 'Forbidden', message, details: null, retryAfterSeconds: null })
const forbidden = (user: string) =>
  `secrets "a-heartbeat" is forbidden: User "${user}" cannot create resource "secrets" in API group "" in the namespace "team-a"`
const BIND =
  'an administrator of the namespace grants it with: kubectl create rolebinding heartbeat-operator-publisher -n team-a --clusterrole='
const OF_MANIFESTS = 'heartbeat-operator-heartbeat-operator-publisher'

describe('the command that grants the right to publish', () => {
  it.each([
    [
      'a ServiceAccount of the chart, whose ClusterRole has its names',
      'system:serviceaccount:monitoring:heartbeat-controller',
      'heartbeat-monitoring-publisher --serviceaccount=monitoring:heartbeat-controller; with watchNamespaces, helm upgrade restores the Role heartbeat-controller in the namespace instead',
    ],
    [
      'a ServiceAccount of the manifests',
      'system:serviceaccount:heartbeat-operator:heartbeat-operator-controller',
      `${OF_MANIFESTS} --serviceaccount=heartbeat-operator:heartbeat-operator-controller; with watchNamespaces, helm upgrade restores the Role heartbeat-operator-controller in the namespace instead`,
    ],
    [
      'a ServiceAccount of another name',
      'system:serviceaccount:jobs:theirs',
      `${OF_MANIFESTS} --serviceaccount=jobs:theirs`,
    ],
    ['a user of a kubeconfig', 'ops@example.com', `${OF_MANIFESTS} --user=ops@example.com`],
    ['a user whose name a shell would split', "it's me; rm", `${OF_MANIFESTS} --user='it'\\''s me; rm'`],
  ])('names the account that the API server rejected: %s', (_, user, rest) => {
    expect(describeGrant(rejection(forbidden(user)), 'team-a')).toBe(`${BIND}${rest}`)
  })

  it.each([
    ['an admission rule', rejection('admission webhook "x" denied the request: no')],
    ['a quota', rejection('secrets "a" is forbidden: exceeded quota: small, requested: secrets=1')],
    ['a rule that quotes such a text with another status', rejection(forbidden('x'), 422)],
    ['another fault', new Error(forbidden('x'))],
  ])('is not given for %s', (_, error) => {
    expect(describeGrant(error, 'team-a')).toBeNull()
  })
})
