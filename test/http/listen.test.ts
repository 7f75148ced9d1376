import { type AddressInfo, createServer } from 'node:net'
import { expect, it } from 'vitest'
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
