/** A server in front of a ping API that fails at first, so that a client has to try again. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

export type Fault = 'no response' | 503

/**
 * `faultOf`: how the `count`th request of a URL fails; undefined: it is passed on, once. A client whose time-out was shorter than a busy machine takes
 * gets the same response when it tries again. The first one has the count 1.
 */
export async function startUnsteadyFront(pingUrl: string, faultOf: (url: string, count: number) => Fault | undefined) {
  const counts = new Map<string, number>()
  const passed = new Map<string, Promise<{ status: number; text: string }>>()
  async function pass(method: string, url: string, body: Buffer) {
    const response = await fetch(pingUrl + url, { method, ...(method === 'POST' ? { body } : {}) })
    return { status: response.status, text: await response.text() }
  }
  const server = createServer(async (request, response) => {
    const body = await buffer(request)
    const { url = '', method = '' } = request
    const count = (counts.get(url) ?? 0) + 1
    counts.set(url, count)
    const fault = faultOf(url, count)
    if (fault === 'no response') return
    if (fault !== undefined) return void response.writeHead(fault).end()
    const key = `${method} ${url} ${body}`
    const passing = passed.get(key) ?? pass(method, url, body)
    passed.set(key, passing)
    const { status, text } = await passing
    response.writeHead(status).end(text)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: close }
}
