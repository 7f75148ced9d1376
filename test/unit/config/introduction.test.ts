import { expect, it } from 'vitest'
import { describeService } from '../../../src/config/introduction.ts'

it.each([
  ['http://127.0.0.1:8081/api/v1', 'http://127.0.0.1:8081/'],
  ['https://example.com/heartbeat/api/v1', 'https://example.com/heartbeat/'],
])('the address of the dashboard beside %s is %s', (api, dashboard) => {
  const addresses = { ping: 'http://127.0.0.1:8080', api, ops: 'http://127.0.0.1:9090' }
  const text = describeService(addresses as never, { isDashboardOn: true }, 'p', null)
  expect(text).toContain(`  dashboard  ${dashboard}\n`)
  expect(describeService(addresses as never, { isDashboardOn: false }, 'p', null)).not.toContain('dashboard')
})
