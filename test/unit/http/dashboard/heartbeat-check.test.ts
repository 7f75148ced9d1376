import { expect, it } from 'vitest'
import { renderHeartbeatCheck } from '../../../../src/http/dashboard/pages/checks/heartbeat-check.ts'

const spec = {
  periodSeconds: 60,
  schedule: null,
  timeZone: null,
  graceSeconds: 60,
  maxRuntimeSeconds: null,
  jobArea: null,
  resumeOnPing: false,
}
const render = (name: string, resource: string) =>
  renderHeartbeatCheck({
    kubernetes: { cluster: 'default', namespace: 'shop', name: resource },
    name,
    description: null,
    tags: [],
    labels: {},
    spec,
  })

it('a check that is named by its resource gets no display name, however long the name of the resource is', () => {
  const long = 'n'.repeat(253)
  for (const [name, resource] of [
    ['nightly', 'nightly'],
    [long.slice(0, 100), long],
  ] as const)
    expect(render(name, resource)).not.toContain('displayName')
  expect(render('Nightly', 'nightly')).toContain('displayName: "Nightly"')
})

it('a name loses the characters that a HeartbeatCheck does not take', () => {
  expect(render('\u202ea\u2066b', 'nightly')).toContain('displayName: "ab"')
  expect(render('\u202e', 'nightly')).not.toContain('displayName')
})

it('the grace time in use is written, also one that the resource does not give', () => {
  expect(render('nightly', 'nightly')).toContain('  graceSeconds: 60\n')
})
