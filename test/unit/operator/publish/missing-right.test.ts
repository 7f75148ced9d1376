import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { describeGrant } from '../../../../src/operator/publish/missing-right.ts'
import { anApiError } from '../../../support/builders.ts'

const rejection = (message: string, status = 403) => anApiError(status, { message })
const forbidden = (user: string) =>
  `secrets "a-heartbeat" is forbidden: User "${user}" cannot create resource "secrets" in API group "" in the namespace "team-a"`
const BIND =
  'an administrator of the namespace grants it with: kubectl create rolebinding heartbeat-operator-publisher -n team-a --clusterrole='
const OF_MANIFESTS = 'heartbeat-operator-heartbeat-operator-publisher'
const ROLE = '<fullname>-<namespace>-publisher'
const OTHERWISE = `; the ClusterRole is ${ROLE} of the Helm release, without Helm ${OF_MANIFESTS}; where single namespaces are watched there is none: repeat helm upgrade of the operator's release, or without Helm apply its manifests again: that restores the roles of its account`

describe('the command that grants the right to publish', () => {
  it.each([
    [
      'a ServiceAccount of the chart, whose ClusterRole has its names',
      'system:serviceaccount:monitoring:heartbeat-controller',
      `heartbeat-monitoring-publisher --serviceaccount=monitoring:heartbeat-controller`,
    ],
    [
      'a ServiceAccount of the manifests',
      'system:serviceaccount:heartbeat-operator:heartbeat-operator-controller',
      `${OF_MANIFESTS} --serviceaccount=heartbeat-operator:heartbeat-operator-controller`,
    ],
    [
      'a ServiceAccount of another name, which does not say what its ClusterRole is called',
      'system:serviceaccount:jobs:theirs',
      `${ROLE} --serviceaccount=jobs:theirs`,
    ],
    ['a user of a kubeconfig', 'ops@example.com', `${ROLE} --user=ops@example.com`],
    ['a user whose name a shell would split', "it's me; rm", `${ROLE} --user='it'\\''s me; rm'`],
  ])('names the account that the API server rejected: %s', (_, user, rest) => {
    expect(describeGrant(rejection(forbidden(user)), 'team-a')).toBe(`${BIND}${rest}${OTHERWISE}`)
  })

  it('names the ClusterRole that the manifests have', async () => {
    const manifests = await readFile('manifests/install.yaml', 'utf8')
    expect(manifests).toContain(`kind: ClusterRole\nmetadata:\n  name: ${OF_MANIFESTS}\n`)
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
