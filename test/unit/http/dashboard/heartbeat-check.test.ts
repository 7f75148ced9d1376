import { describe, expect, it } from 'vitest'
import { NO_SPEC } from '../../../../src/checks/read-spec.ts'
import { NO_TEXTS } from '../../../../src/domain/check.ts'
import { LIMIT_WORDS } from '../../../../src/domain/followed-defaults.ts'
import { renderHeartbeatCheck } from '../../../../src/http/dashboard/pages/checks/heartbeat-check.ts'

const spec = { ...NO_SPEC, periodSeconds: 60, graceSeconds: 60 }
const kubernetes = { cluster: 'default', namespace: 'shop', name: 'nightly' }
const TEXTS = { ...NO_TEXTS, name: 'nightly' }

describe('of a check that follows a CronJob', () => {
  const follow = (limitFrom: string | null, given: object = {}) =>
    renderHeartbeatCheck({
      kubernetes,
      ...TEXTS,
      spec: { ...spec, jobArea: 'default', graceSeconds: 300, maxRuntimeSeconds: 43_200, ...given },
      cronJob: { name: 'nightly', lastRun: null, openJobs: [], limitFrom },
    })

  it('names no value that comes from there, or is a default', () => {
    const limits = [LIMIT_WORDS.deadline, LIMIT_WORDS.default]
    for (const page of [...limits.map((words) => follow(words, { maxRuntimeSeconds: 660 })), follow(null)])
      expect(page).not.toMatch(/periodSeconds|graceSeconds|maxRuntimeSeconds/)
  })

  it('names those that are its own', () => {
    const annotation = 'annotation heartbeat-operator.io/max-runtime-seconds of its CronJob'
    for (const words of [LIMIT_WORDS.resource, annotation])
      expect(follow(words)).toContain('  maxRuntimeSeconds: 43200\n')
    // Where it is set is not known while the CronJob was not read.
    expect(follow(null, { maxRuntimeSeconds: 660 })).toContain('  maxRuntimeSeconds: 660\n')
    expect(follow(null, { graceSeconds: 60 })).toContain('  graceSeconds: 60\n')
  })
})

it('exit codes of a warning are written as a list, and left out where there are none', () => {
  const of = (warnExitCodes: readonly number[]) =>
    renderHeartbeatCheck({ ...TEXTS, kubernetes, spec: { ...spec, warnExitCodes } })
  expect(of([3, 24])).toContain('  warnExitCodes: [3, 24]\n')
  expect(of([])).not.toContain('warnExitCodes')
})

it('thresholds and reminders are written where they differ from their defaults', () => {
  const of = (given: object) => renderHeartbeatCheck({ ...TEXTS, kubernetes, spec: { ...spec, ...given } })
  expect(of({})).not.toMatch(/BeforeDown|remind/)
  const given = { failuresBeforeDown: 3, missesBeforeDown: 2, remindEverySeconds: 300, remindOnEachRun: true }
  expect(of(given)).toContain(
    '  failuresBeforeDown: 3\n  missesBeforeDown: 2\n  remindEverySeconds: 300\n  remindOnEachRun: true\n',
  )
})

const render = (name: string, resource: string) =>
  renderHeartbeatCheck({ ...TEXTS, kubernetes: { ...kubernetes, name: resource }, name, spec })

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
