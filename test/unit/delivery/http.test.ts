import type { LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { createHttpClient, type HttpClientOptions, type HttpRequest } from '../../../src/delivery/http.ts'
import { TargetRejected } from '../../../src/delivery/targets.ts'
import { createAuthority, signServer } from '../../../tools/cluster/control-plane-certificates.ts'
import { type ReceiverOptions, startReceiver } from '../../support/receiver.ts'
import { eventually } from '../../support/until.ts'

const ends: (() => Promise<void>)[] = []
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const end of ends.splice(0).reverse()) await end()
})

async function receive(options?: ReceiverOptions) {
  const receiver = await startReceiver(options)
  ends.push(receiver.close)
  return receiver
}

function makeClient(options: Partial<HttpClientOptions> = {}) {
  const client = createHttpClient({ allowedTargets: ['127.0.0.0/8', '::1'], ...options })
  ends.push(client.close)
  const send = (request: Partial<HttpRequest> & { url: string }, signal = AbortSignal.timeout(10_000)) =>
    client.send({ method: 'POST', isTrusted: false, tenant: undefined, ...request }, signal)
  return { ...client, send }
}

/** Each call takes the next list of addresses; the last one stays. */
function answerLookups(...answers: readonly (readonly string[] | NodeJS.ErrnoException)[]) {
  const names: string[] = []
  const lookup: LookupFunction = (name, { all }, callback) => {
    const answer = answers[Math.min(names.length, answers.length - 1)]!
    names.push(name)
    setImmediate(() => {
      if (answer instanceof Error) return callback(answer, [])
      const addresses = answer.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 }))
      if (all) callback(null, addresses)
      else callback(null, addresses[0]!.address, addresses[0]!.family)
    })
  }
  return { lookup, names }
}

describe('a request', () => {
  it('arrives as it was given, and its response is returned', async () => {
    const receiver = await receive()
    receiver.answer({ status: 202, headers: { 'X-Trace': 'abc' }, text: 'taken' })
    const answer = await makeClient().send({
      url: `${receiver.url}/hooks/a%20b?key=1#fragment`,
      headers: { 'content-type': 'application/json' },
      body: '{"ä":1}',
    })
    expect(answer).toMatchObject({ status: 202, text: 'taken', headers: { 'x-trace': 'abc' } })
    const [request] = receiver.requests
    expect(request).toMatchObject({ method: 'POST', path: '/hooks/a%20b?key=1', body: '{"ä":1}' })
    expect(request!.headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': '8',
      'user-agent': 'heartbeat-operator',
      host: `127.0.0.1:${receiver.port}`,
    })
    expect(request!.headers).not.toHaveProperty('authorization')
  })

  it('without a body is a GET', async () => {
    const receiver = await receive()
    expect(await makeClient().send({ method: 'GET', url: receiver.url })).toEqual(
      expect.objectContaining({ status: 204, text: '' }),
    )
    expect(receiver.requests[0]).toMatchObject({ method: 'GET', path: '/', body: '' })
  })

  it.each([
    ['user:pass@', 'user:pass'],
    ['us%3Aer:p%40ss%20w%C3%B6rd@', 'us:er:p@ss wörd'],
    ['token@', 'token:'],
    [':secret@', ':secret'],
    ['user:100%@', 'user:100%'],
  ])('sends the credentials %s of its URL as Basic authentication, and not in the URL', async (userinfo, expected) => {
    const receiver = await receive()
    await makeClient().send({ url: receiver.url.replace('//', `//${userinfo}`) })
    const { headers, path } = receiver.requests[0]!
    expect(headers.authorization).toBe(`Basic ${Buffer.from(expected).toString('base64')}`)
    expect(headers.host).toBe(`127.0.0.1:${receiver.port}`)
    expect(path).toBe('/')
  })

  it('has its response after interim ones, and is sent once', async () => {
    const receiver = await receive()
    receiver.answer({
      raw: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
    })
    expect(await makeClient().send({ url: receiver.url, body: '{}' })).toMatchObject({ status: 200, text: 'ok' })
    expect(receiver.requests).toHaveLength(1)
  })

  it('follows no redirect', async () => {
    const target = await receive()
    const receiver = await receive()
    receiver.answer({ status: 307, headers: { location: target.url } })
    expect(await makeClient().send({ url: receiver.url })).toMatchObject({
      status: 307,
      headers: { location: target.url },
    })
    expect(target.requests).toEqual([])
  })

  it('ignores the variables of proxies', async () => {
    const proxy = await receive()
    const receiver = await receive()
    for (const name of ['HTTP_PROXY', 'http_proxy']) vi.stubEnv(name, proxy.url)
    for (const name of ['NO_PROXY', 'no_proxy']) vi.stubEnv(name, '')
    expect(await makeClient().send({ url: receiver.url })).toMatchObject({ status: 204 })
    expect(proxy.connections().accepted).toBe(0)
  })
})

describe('the rule of targets', () => {
  it.each(['http://127.0.0.1/', 'http://2130706433/', 'http://0x7f.1/', 'http://[::ffff:127.0.0.1]/', 'http://[::1]/'])(
    'rejects %s without a lookup',
    async (url) => {
      const receiver = await receive()
      const { port } = receiver
      const { names, lookup } = answerLookups(['8.8.8.8'])
      const target = url.replace(/\/$/, `:${port}/`)
      const sending = makeClient({ allowedTargets: [], lookup }).send({ url: target })
      await expect(sending).rejects.toThrow(TargetRejected)
      await expect(sending).rejects.toThrow(/is a loopback address, .*ALLOWED_TARGETS/)
      expect(names).toEqual([])
      expect(receiver.connections().accepted).toBe(0)
    },
  )

  it.each([
    ['localhost.', ['127.0.0.1'], '127.0.0.1 is a loopback address'],
    ['metadata.google.internal', ['169.254.169.254'], '169.254.169.254 is a link-local address'],
    ['inside.test', ['::ffff:10.0.0.1'], '::ffff:10.0.0.1 is a private address'],
    ['inside.test', ['fd00:ec2::254', '10.0.0.1'], 'fd00:ec2::254 is a private address'],
  ])('rejects %s, which resolves to %s', async (name, addresses, why) => {
    const { lookup } = answerLookups(addresses)
    const sending = makeClient({ allowedTargets: [], lookup }).send({ url: `http://${name}/` })
    await expect(sending).rejects.toThrow(`${name}: ${why}`)
  })

  it('applies to https:, too', async () => {
    const authority = createAuthority('test')
    const receiver = await receive({ certified: signServer(authority, ['127.0.0.1', 'hooks.test']) })
    const { lookup } = answerLookups(['127.0.0.1'])
    const client = makeClient({ allowedTargets: [], lookup, ca: authority.certificate })
    await expect(client.send({ url: receiver.url })).rejects.toThrow(TargetRejected)
    await expect(client.send({ url: `https://hooks.test:${receiver.port}` })).rejects.toThrow(TargetRejected)
    expect(receiver.connections().accepted).toBe(0)
  })

  it('connects only to the allowed addresses of a name', async () => {
    const allowed = await receive()
    const refused = await receive({ host: '127.0.0.2', port: allowed.port })
    const { lookup, names } = answerLookups(['127.0.0.2', '10.0.0.1', '127.0.0.1'])
    const client = makeClient({ allowedTargets: ['127.0.0.1'], lookup })
    expect(await client.send({ url: `http://hooks.test:${allowed.port}/` })).toMatchObject({ status: 204 })
    expect(names).toEqual(['hooks.test'])
    expect(allowed.requests[0]!.headers.host).toBe(`hooks.test:${allowed.port}`)
    expect(refused.connections().accepted).toBe(0)
  })

  it('tries the next allowed address when the first one refuses connections', async () => {
    const receiver = await receive({ host: '127.0.0.2' })
    const { lookup } = answerLookups(['127.0.0.3', '127.0.0.2'])
    expect(await makeClient({ lookup }).send({ url: `http://hooks.test:${receiver.port}/` })).toMatchObject({
      status: 204,
    })
  })

  it('is applied at each connection: a name that moves to a forbidden address is rejected', async () => {
    const receiver = await receive()
    const inside = await receive({ host: '127.0.0.2', port: receiver.port })
    // Each on a connection of its own.
    receiver.answer({ status: 200, headers: { connection: 'close' } })
    const { lookup, names } = answerLookups(['127.0.0.1'], ['127.0.0.2'])
    const client = makeClient({ allowedTargets: ['127.0.0.1'], lookup })
    const url = `http://rebinding.test:${receiver.port}/`
    expect(await client.send({ url })).toMatchObject({ status: 200 })
    await expect(client.send({ url })).rejects.toThrow('rebinding.test: 127.0.0.2 is a loopback address')
    expect(names).toHaveLength(2)
    expect(inside.connections().accepted).toBe(0)
  })

  it('is applied to the one lookup of a connection', async () => {
    const receiver = await receive()
    const inside = await receive({ host: '127.0.0.2', port: receiver.port })
    const { lookup, names } = answerLookups(['127.0.0.1'], ['127.0.0.2'])
    const client = makeClient({ allowedTargets: ['127.0.0.1'], lookup })
    expect(await client.send({ url: `http://rebinding.test:${receiver.port}/` })).toMatchObject({ status: 204 })
    expect(names).toEqual(['rebinding.test'])
    expect(inside.connections().accepted).toBe(0)
  })

  it('lets a trusted request go anywhere, and its socket serves no other', async () => {
    const receiver = await receive()
    const client = makeClient({ allowedTargets: [] })
    expect(await client.send({ url: receiver.url, isTrusted: true })).toMatchObject({ status: 204 })
    // Kept alive: the socket that must not be lent is there.
    expect(receiver.connections()).toEqual({ accepted: 1, open: 1 })
    await expect(client.send({ url: receiver.url })).rejects.toThrow(TargetRejected)
    expect(receiver.requests).toHaveLength(1)
  })

  it('keeps trusted requests off the sockets of others', async () => {
    const receiver = await receive()
    const client = makeClient()
    for (let count = 0; count < 10; count++)
      await client.send({ url: `${receiver.url}/${count % 2}`, isTrusted: count % 2 === 1 })
    const used = ['/0', '/1'].map(
      (path) =>
        new Set(receiver.requests.filter((request) => request.path === path).map(({ connection }) => connection)),
    )
    expect([...used[0]!].filter((connection) => used[1]!.has(connection))).toEqual([])
    // And yet sockets are used again.
    expect(receiver.connections().accepted).toBeLessThan(10)
  })

  it('reports a failed lookup, and repeats it for the next request', async () => {
    const receiver = await receive()
    const missing = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' })
    const { lookup } = answerLookups(missing, [], ['127.0.0.1'])
    const client = makeClient({ lookup })
    const url = `http://hooks.test:${receiver.port}/`
    await expect(client.send({ url })).rejects.toMatchObject({ code: 'ENOTFOUND' })
    await expect(client.send({ url })).rejects.toMatchObject({ code: 'ENOTFOUND' })
    expect(await client.send({ url })).toMatchObject({ status: 204 })
  })
})

it('the slow names of one tenant do not delay a request of another', async () => {
  const receiver = await receive()
  const asked: string[] = []
  const client = makeClient({
    lookup: (name, _, callback) => {
      asked.push(name)
      if (name === 'hooks.test') callback(null, [{ address: '127.0.0.1', family: 4 }])
    },
  })
  const slow = { organizationId: 'a', projectId: null }
  const quick = { organizationId: 'b', projectId: null }
  const end = new AbortController()
  // More than the lookups that run at a time, of as many zones.
  const waiting = Array.from({ length: 9 }, (_, index) =>
    client.send({ url: `http://slow.zone-${index}.test/`, tenant: slow }, end.signal),
  )
  await eventually('the name is asked for', () => asked.length > 0)
  const url = `http://hooks.test:${receiver.port}/`
  expect(await client.send({ url, tenant: quick })).toMatchObject({ status: 204 })
  end.abort()
  expect((await Promise.allSettled(waiting)).map(({ status }) => status)).toEqual(Array(9).fill('rejected'))
})

describe('TLS', () => {
  it('is verified against the name', async () => {
    const authority = createAuthority('test')
    const receiver = await receive({ certified: signServer(authority, ['127.0.0.1', 'hooks.test']) })
    const { lookup } = answerLookups(['127.0.0.1'])
    const client = makeClient({ lookup, ca: authority.certificate })
    expect(await client.send({ url: receiver.url })).toMatchObject({ status: 204 })
    expect(await client.send({ url: `https://hooks.test:${receiver.port}/` })).toMatchObject({ status: 204 })
    await expect(client.send({ url: `https://other.test:${receiver.port}/` })).rejects.toMatchObject({
      code: 'ERR_TLS_CERT_ALTNAME_INVALID',
    })
    await expect(makeClient().send({ url: receiver.url, isTrusted: true })).rejects.toMatchObject({
      code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    })
    expect(receiver.requests).toHaveLength(2)
  })
})

describe('the body of a response', () => {
  it('is kept to 4 KB, and no character is split', async () => {
    const receiver = await receive()
    receiver.answer({ status: 200, text: `x${'ä'.repeat(30_000)}` })
    const { text } = await makeClient().send({ url: receiver.url })
    expect(text).toBe(`x${'ä'.repeat(2_047)}`)
  })

  it('is read up to 64 KB, with the socket kept for the next request', async () => {
    const receiver = await receive()
    receiver.answer({ status: 200, text: 'x'.repeat(60_000) })
    const client = makeClient()
    for (let count = 0; count < 6; count++) await client.send({ url: receiver.url })
    expect(receiver.connections().accepted).toBeLessThan(6)
  })

  it('without end is cut, and its socket closed', async () => {
    const receiver = await receive()
    receiver.answer({ status: 200, body: 'flood' })
    const { status, text } = await makeClient({ bodyMs: 60_000 }).send({ url: receiver.url })
    expect({ status, length: text.length }).toEqual({ status: 200, length: 4_096 })
    await eventually('no connection is open', () => receiver.connections().open === 0)
  })

  it('in tiny pieces is cut, and its socket closed', async () => {
    const receiver = await receive()
    const piece = '1\r\nx\r\n'
    receiver.answer({ raw: `HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n${piece.repeat(60_000)}` })
    const { status, text } = await makeClient({ bodyMs: 60_000 }).send({ url: receiver.url })
    expect({ status, length: text.length }).toEqual({ status: 200, length: 1_025 })
    await eventually('no connection is open', () => receiver.connections().open === 0)
  })

  it('that trickles is read for a limited time, and its socket closed', async () => {
    const receiver = await receive()
    receiver.answer({ status: 503, text: 'wait', body: 'trickle' })
    const { status, text } = await makeClient({ bodyMs: 1_000 }).send({ url: receiver.url })
    expect(status).toBe(503)
    expect(text).toMatch(/^wait\.+$/)
    await eventually('no connection is open', () => receiver.connections().open === 0)
  })

  it('is returned as far as it arrived when the signal aborts', async () => {
    const receiver = await receive()
    receiver.answer({ status: 200, text: 'begun', body: 'trickle' })
    const stop = new AbortController()
    const sending = makeClient({ bodyMs: 60_000 }).send({ url: receiver.url }, stop.signal)
    await receiver.waitFor(1)
    // The client is in this process: what the receiver has written is read before these turns of the event loop are over.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((next) => setImmediate(next))
    stop.abort()
    const { status, text } = await sending
    expect(status).toBe(200)
    expect(text).toMatch(/^begun\.*$/)
  })

  it('that breaks off is returned as far as it arrived', async () => {
    const receiver = await receive()
    receiver.answer({ status: 200, headers: { 'content-length': '1000' }, text: 'half', body: 'break' })
    expect(await makeClient().send({ url: receiver.url })).toMatchObject({ status: 200, text: 'half and' })
  })
})

describe('an abort', () => {
  it('ends a request with the reason of its signal', async () => {
    const receiver = await receive()
    receiver.answer('hang')
    const time = new AbortController()
    const sending = makeClient().send({ url: receiver.url }, time.signal)
    await receiver.waitFor(1)
    time.abort(new Error('time is up'))
    await expect(sending).rejects.toThrow('time is up')
    await eventually('no connection is open', () => receiver.connections().open === 0)
  })

  it('ends a request without a connection, and it is not sent later', async () => {
    const receiver = await receive()
    const { promise: asked, resolve: ask } = Promise.withResolvers<Parameters<LookupFunction>[2]>()
    const client = makeClient({ lookup: (_, __, callback) => ask(callback) })
    const time = new AbortController()
    const sending = client.send({ url: `http://hooks.test:${receiver.port}/` }, time.signal)
    const answerLookup = await asked
    time.abort(new Error('time is up'))
    await expect(sending).rejects.toThrow('time is up')
    answerLookup(null, [{ address: '127.0.0.1', family: 4 }])
    await eventually('a connection is accepted', () => receiver.connections().accepted === 1)
    expect(await client.send({ url: `http://127.0.0.1:${receiver.port}/second` })).toMatchObject({ status: 204 })
    expect(receiver.requests.map(({ path }) => path)).toEqual(['/second'])
  })

  it('before the request prevents it', async () => {
    const receiver = await receive()
    await expect(makeClient().send({ url: receiver.url }, AbortSignal.abort())).rejects.toThrow(/abort/)
    expect(receiver.requests).toEqual([])
  })

  it('by close() ends running requests and idle connections', async () => {
    const receiver = await receive()
    const client = makeClient()
    await client.send({ url: receiver.url })
    await client.send({ url: receiver.url, isTrusted: true })
    receiver.answer('hang')
    const sending = client.send({ url: receiver.url })
    await receiver.waitFor(3)
    const ended = expect(sending).rejects.toMatchObject({ code: 'ECONNRESET' })
    await client.close()
    await ended
    await eventually('no connection is open', () => receiver.connections().open === 0)
    await client.close()
  })
})
