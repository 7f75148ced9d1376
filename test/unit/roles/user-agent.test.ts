import { expect, it } from 'vitest'
import { userAgent } from '../../../src/roles/user-agent.ts'
import { VERSION } from '../../../src/runtime/version.ts'

it.each([
  ['linux', 'x64', 'linux/amd64'],
  ['linux', 'arm64', 'linux/arm64'],
  ['win32', 'ia32', 'windows/386'],
  ['darwin', 'arm64', 'darwin/arm64'],
] as const)('on %s, %s the user agent has the names of Go: %s', (platform, architecture, expected) => {
  const agent = userAgent('controller', { platform, arch: architecture })
  expect(agent).toBe(`heartbeat-operator/${VERSION} (${expected}) controller`)
})
