import { get } from 'node:http'
import { type AddressInfo, createServer, Server } from 'node:net'
import { expect, it, onTestFinished, vi } from 'vitest'
import { createHttpServer, ListenError } from '../../src/http/server.ts'

/** The line that a person reads where a server named `api` cannot listen. */
async function failureOf(bindAddress: string, port: number): Promise<string> {
  const server = createHttpServer({
    name: 'api',
    handler: () => {},
    bindAddress,
    port,
    errorText: (text) => ({ type: 'text/plain', text }),
  })
  const error = await server.listen().then(
    () => server.close(0),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ListenError)
  return (error as ListenError).message
}

it('a port in use is named, with the variable that changes it', async () => {
  const holder = createServer()
  await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve))
  const { port } = holder.address() as AddressInfo
  expect(await failureOf('127.0.0.1', port)).toBe(
    `port ${port} on 127.0.0.1 is in use: stop what uses it, or set API_PORT to another port (0 takes a free one)`,
  )
  await new Promise((resolve) => holder.close(resolve))
})

it('an address of another machine is explained', async () => {
  expect(await failureOf('192.0.2.1', 0)).toContain('192.0.2.1 is not an address of this machine: set BIND_ADDRESS')
})

const serve = (bindAddress: string) => {
  const server = createHttpServer({
    name: 'api',
    handler: (_, response) => response.end(),
    bindAddress,
    port: 0,
    errorText: (text) => ({ type: 'text/plain', text }),
  })
  onTestFinished(() => server.close(0))
  return server.listen()
}
const statusAt = (host: string, port: number) =>
  new Promise<number | undefined>((resolve, reject) =>
    get({ host, port, agent: false }, (response) => resolve(response.resume().statusCode)).once('error', reject),
  )

it('on :: both families are served', async () => {
  const { port } = await serve('::')
  expect([await statusAt('127.0.0.1', port), await statusAt('::1', port)]).toEqual([200, 200])
})

it.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])('on :: a machine without IPv6 (%s) serves IPv4', async (code) => {
  // This machine has IPv6: the first call of listen() fails as the kernel of another one would make it fail.
  const listen = vi.spyOn(Server.prototype, 'listen')
  onTestFinished(() => listen.mockRestore())
  listen.mockImplementationOnce(function (this: Server) {
    queueMicrotask(() => this.emit('error', Object.assign(new Error(code), { code })))
    return this
  })
  const { port } = await serve('::')
  expect(listen.mock.calls.map(([, host]) => host)).toEqual(['::', '0.0.0.0'])
  expect(await statusAt('127.0.0.1', port)).toBe(200)
})
