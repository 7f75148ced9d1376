/** How the client is let in: tokens that expire, certificates that change, for requests and for watches. */

import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import { createClient, type KubernetesClient } from '../../../src/kubernetes/client.ts'
import { findConnection } from '../../../src/kubernetes/connection.ts'
import { createAuthority, signClient, signServer } from '../../../tools/cluster/control-plane-certificates.ts'
import {
  CONFIG_MAPS,
  type FakeApiServer,
  type ServerCertificate,
  startFakeApiServer,
} from '../../support/fake-api-server.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { eventually } from '../../support/until.ts'
import { useEach } from '../../support/use.ts'
import { untilDone } from './until-done.ts'

const authority = createAuthority('first')
const nextAuthority = createAuthority('second')
const clientAuthority = createAuthority('clients')

let folder: string
let stack: AsyncDisposableStack
let attempts: number

beforeEach(async () => {
  stack = new AsyncDisposableStack()
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-client-'))
  stack.defer(() => rm(folder, { recursive: true }))
})
const clock = useEach(createManualClock)
beforeEach(async () => {
  attempts = 0
  await write('ca.crt', authority.certificate)
})
afterEach(() => stack.disposeAsync())

const write = (name: string, content: string) => writeFile(join(folder, name), content)

async function serve(certificate: ServerCertificate = signServer(authority, ['127.0.0.1'])): Promise<FakeApiServer> {
  return stack.use(await startFakeApiServer({ certificate }))
}

/** By a kubeconfig, as any client would. */
async function connectTo(server: string, cluster: object = {}, user: object = { token: 'ours' }) {
  const text = stringify({
    'current-context': 'a',
    clusters: [{ name: 'a', cluster: { server, 'certificate-authority': 'ca.crt', ...cluster } }],
    users: [{ name: 'a', user }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
  })
  await write('config', text)
  const connection = await findConnection({ KUBECONFIG: join(folder, 'config') }, { clock })
  const metrics = {
    request() {
      attempts += 1
    },
  }
  const client = createClient({ connection: connection!, clock, random: () => 0, metrics })
  stack.defer(() => client.close())
  return client
}

const list = (client: KubernetesClient) => untilDone(clock, client.list(CONFIG_MAPS, { limit: 1 }))

/** Opens one, hears of one change, and leaves. */
async function watchOnce(client: KubernetesClient, server: FakeApiServer): Promise<string> {
  const name = `w${server.requests.length}`
  const options = { resourceVersion: '0', timeoutSeconds: 300, signal: AbortSignal.timeout(10_000) }
  server.collection(CONFIG_MAPS).create({ metadata: { name, namespace: 'shop' } })
  for await (const { object } of client.watch(CONFIG_MAPS, options)) if (object.metadata.name === name) return name
  return 'the watch ended'
}

const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => 'let in',
    (error) => error.cause?.code ?? error.status ?? error.message,
  )

describe('tokens', () => {
  it('expired tokens are read again, once, unnoticed by the caller', async () => {
    const server = await serve()
    await write('token', 'first')
    const client = await connectTo(server.url, {}, { tokenFile: 'token' })
    server.setTokens(['first'])
    await list(client)
    server.setTokens(['second'])
    await write('token', 'second')
    await list(client)
    await watchOnce(client, server)
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first',
      'Bearer first',
      'Bearer second',
      'Bearer second',
    ])
    server.setTokens(['third'])
    await write('token', 'third')
    await watchOnce(client, server)
    expect(server.requests.slice(-2).map(({ headers }) => headers.authorization)).toEqual([
      'Bearer second',
      'Bearer third',
    ])
    // New tokens go over the sockets that are there.
    expect(server.connections().accepted).toBeLessThanOrEqual(4)
  })

  it('tokens that stay rejected fail the call after two attempts', async () => {
    const server = await serve()
    const client = await connectTo(server.url)
    server.setTokens([])
    expect(await codeOf(list(client))).toBe(401)
    expect(server.requests).toHaveLength(2)
  })
})

describe('the certificate of the server', () => {
  it('must be of the authority that the kubeconfig names, for requests and watches', async () => {
    const server = await serve(signServer(nextAuthority, ['127.0.0.1']))
    const client = await connectTo(server.url)
    expect(await codeOf(list(client))).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE')
    expect(await codeOf(watchOnce(client, server))).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE')
    expect(server.requests).toHaveLength(0)
    const unchecked = await connectTo(server.url, {
      'certificate-authority': undefined,
      'insecure-skip-tls-verify': true,
    })
    expect(await codeOf(list(unchecked))).toBe('let in')
    expect(await codeOf(watchOnce(unchecked, server))).toBe('let in')
  })

  it('must be for its name, or for the name that the kubeconfig gives', async () => {
    const server = await serve(signServer(authority, ['kubernetes']))
    const client = await connectTo(server.url)
    expect(await codeOf(list(client))).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    const named = await connectTo(server.url, { 'tls-server-name': 'kubernetes' })
    expect(await codeOf(list(named))).toBe('let in')
    expect(await codeOf(watchOnce(named, server))).toBe('let in')
  })

  it('may change to one of another authority while we run', async () => {
    const server = await serve()
    const client = await connectTo(server.url)
    await list(client)
    const watching = watchUntilEnd(client)
    await eventually('the watch is open', () => server.watches.length === 1)
    server.setCertificate(signServer(nextAuthority, ['127.0.0.1']))
    // Sockets that are open stay good.
    await list(client)
    await write('ca.crt', nextAuthority.certificate)
    // A new socket, for which the old authority does not vouch: it is noticed, not waited for.
    expect(await codeOf(watchOnce(client, server))).toBe('let in')
    await list(client)
    // The watch over an old socket goes on until its end.
    expect(server.watches.length).toBeGreaterThanOrEqual(1)
    server.watches[0]!.end()
    await watching
  })

  it('is not asked about again and again when it stays wrong', async () => {
    const server = await serve(signServer(nextAuthority, ['127.0.0.1']))
    const client = await connectTo(server.url)
    await codeOf(client.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' } }))
    expect(attempts).toBe(2)
  })
})

async function watchUntilEnd(client: KubernetesClient): Promise<void> {
  const options = { resourceVersion: '0', timeoutSeconds: 300, signal: AbortSignal.timeout(10_000) }
  for await (const _ of client.watch(CONFIG_MAPS, options));
}

describe('our own certificate', () => {
  it('is presented, and a new one is taken when its file has changed', async () => {
    const certificate = { ...signServer(authority, ['127.0.0.1']), clientAuthority: clientAuthority.certificate }
    const server = await serve(certificate)
    const writeClient = async (name: string) => {
      const signed = signClient(clientAuthority, name, [])
      await write('client.crt', signed.certificate)
      await write('client.key', signed.key)
    }
    await writeClient('jane')
    const client = await connectTo(server.url, {}, { 'client-certificate': 'client.crt', 'client-key': 'client.key' })
    await list(client)
    await watchOnce(client, server)
    expect(server.requests.map(({ clientName }) => clientName)).toEqual(['jane', 'jane'])
    await writeClient('john')
    await clock.advance(60_000)
    await list(client)
    await watchOnce(client, server)
    expect(server.requests.slice(2).map(({ clientName }) => clientName)).toEqual(['john', 'john'])
    // The socket of before is not kept.
    await eventually('one connection is open', () => server.connections().open === 1)
  })
})

describe('the way', () => {
  it('may lead through a proxy, with TLS from end to end', async () => {
    const server = await serve()
    const targets: string[] = []
    const proxy = createServer()
    proxy.on('connect', (request, socket) => {
      targets.push(request.url ?? '')
      const upstream = connect(Number(request.url!.split(':')[1]), '127.0.0.1', () => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        upstream.pipe(socket).pipe(upstream)
      })
      const end = () => upstream.destroy()
      socket.on('error', end).on('close', end)
      upstream.on('error', () => socket.destroy())
    })
    proxy.listen(0, '127.0.0.1')
    await once(proxy, 'listening')
    stack.defer(() => void proxy.close())
    const client = await connectTo(server.url, {
      'proxy-url': `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    })
    await list(client)
    await watchOnce(client, server)
    expect(targets).toEqual([new URL(server.url).host, new URL(server.url).host])
    expect(server.requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer ours', 'Bearer ours'])
    await client.close()
  })
})
