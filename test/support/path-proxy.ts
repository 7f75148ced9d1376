/** A reverse proxy that serves another server below a path of its own. */

import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface PathProxy extends AsyncDisposable {
  /** `http://127.0.0.1:1234`. */
  readonly origin: string
  /** The origin of the server behind it. */
  target: string
}

export interface PathProxyOptions {
  readonly path: string
  /** What happens to the path: it is removed, it is kept, or it is removed in a way that leaves two slashes. */
  readonly sends: 'rest' | 'all' | 'two slashes'
  /** Whether the server gets the name that the client asked for. Default: true. */
  readonly passesHost?: boolean
}

/** Everything outside of the path is 502, so that a test sees what leads there. */
export async function startPathProxy({ path, sends, passesHost = true }: PathProxyOptions): Promise<PathProxy> {
  let target = ''
  const server = createServer((incoming, outgoing) => {
    const url = incoming.url ?? ''
    if (url !== path && !url.startsWith(`${path}/`) && !url.startsWith(`${path}?`)) {
      outgoing.writeHead(502).end(`nothing is at ${url}`)
      return
    }
    const rest = url.slice(path.length)
    const sent = { rest: rest.startsWith('/') ? rest : `/${rest}`, all: url, 'two slashes': `/${rest}` }[sends]
    const headers = { ...incoming.headers, ...(passesHost ? {} : { host: new URL(target).host }) }
    const forwarded = request(target, { path: sent, method: incoming.method!, headers, agent: false }, (response) => {
      outgoing.writeHead(response.statusCode!, response.rawHeaders)
      response.pipe(outgoing)
    })
    forwarded.on('error', () => outgoing.destroy())
    outgoing.on('close', () => forwarded.destroy())
    incoming.pipe(forwarded)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get target() {
      return target
    },
    set target(origin) {
      target = origin
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
