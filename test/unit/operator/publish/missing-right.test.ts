import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../../src/kubernetes/errors.ts'
import { grantCommand } from '../../../../src/operator/publish/missing-right.ts'

const rejection = (message: string, status = 403) =>
  new ApiError({ request: 'r', status, reason: 'Forbidden', message, details: null, retryAfterSeconds: null })
const forbidden = (user: string) =>
  `secrets "a-heartbeat" is forbidden: User "${user}" cannot create resource "secrets" in API group "" in the namespace "team-a"`
const BIND =
  'kubectl create rolebinding heartbeat-operator-publisher -n team-a --clusterrole=heartbeat-operator-publisher'

describe('F4: the command that grants the right to publish', () => {
  it.each([
    [
      'a ServiceAccount',
      'system:serviceaccount:monitoring:heartbeat-controller',
      '--serviceaccount=monitoring:heartbeat-controller',
    ],
    ['a user of a kubeconfig', 'ops@example.com', '--user=ops@example.com'],
    ['a user whose name a shell would split', "it's me; rm", "--user='it'\\''s me; rm'"],
  ])('names the account that the API server rejected: %s', (_, user, subject) => {
    expect(grantCommand(rejection(forbidden(user)), 'team-a')).toBe(`${BIND} ${subject}`)
  })

  it.each([
    ['an admission rule', rejection('admission webhook "x" denied the request: no')],
    ['a quota', rejection('secrets "a" is forbidden: exceeded quota: small, requested: secrets=1')],
    ['a rule that quotes such a text with another status', rejection(forbidden('x'), 422)],
    ['another fault', new Error(forbidden('x'))],
  ])('is not given for %s', (_, error) => {
    expect(grantCommand(error, 'team-a')).toBeNull()
  })
})
