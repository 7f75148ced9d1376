/** The program of aborted-writes.test.ts: writes by HTTP/2, each aborted some milliseconds after it began, before or after it was sent. */

import { once } from 'node:events'
import { createSecureServer } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { createClient } from '../../../src/kubernetes/client.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import { createAuthority, signServer } from '../../../tools/cluster/control-plane-certificates.ts'

const AT_ONCE = 24
const WRITES = 3_000
const LATEST_MS = 6
const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }

const authority = createAuthority('test')
const { certificate, key } = signServer(authority, ['127.0.0.1'])
const server = createSecureServer({ cert: certificate, key }, (request, response) => {
  request.on('error', () => {}).resume()
  response.stream.on('error', () => {})
  setTimeout(() => response.writeHead(200, { 'content-type': 'application/json' }).end('{}'), Math.random() * LATEST_MS)
})
server.listen(0, '127.0.0.1')
await once(server, 'listening')
const credentials = { headers: {}, tls: { ca: authority.certificate } }
const client = createClient({
  clock: systemClock,
  connection: {
    server: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    namespace: 'default',
    source: 'the test',
    proxyUrl: null,
    readCredentials: () => Promise.resolve(credentials),
    renewCredentials: () => Promise.resolve(credentials),
  },
})

let left = WRITES
let aborted = 0
async function write(): Promise<void> {
  for (; left > 0; left -= 1) {
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: 'default', name: 'a' } }
    const stopping = new AbortController()
    setTimeout(() => stopping.abort(), Math.random() * LATEST_MS)
    await client.create(CONFIG_MAPS, object, { signal: stopping.signal }).catch(() => {
      aborted += 1
    })
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, write))
await client.close()
process.stdout.write(`${aborted} writes were aborted\n`)
process.exit(0)
