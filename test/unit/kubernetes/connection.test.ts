import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { stringify } from 'yaml'
import {
  type Connection,
  type ConnectionEnvironment,
  findConnection,
  KubeconfigError,
} from '../../../src/kubernetes/connection.ts'
import { createAuthority, signClient } from '../../../tools/cluster/control-plane-certificates.ts'
import { createManualClock } from '../../support/manual-clock.ts'
import { useEach } from '../../support/use.ts'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-connection-'))
})
const clock = useEach(createManualClock)
afterEach(() => rm(folder, { recursive: true }))

const authority = createAuthority('authority')
const base64 = (text: string) => Buffer.from(text).toString('base64')

async function write(name: string, content: string): Promise<string> {
  const path = join(folder, name)
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, content, { mode: 0o700 })
  return path
}

interface Parts {
  readonly name?: string
  readonly cluster?: object | null
  readonly user?: object | null
  readonly context?: object
  readonly current?: string
}

/** A kubeconfig of one context; each part can be left out. */
function aKubeconfig({ name = 'ours', cluster, user, context, current = name }: Parts = {}): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': current,
    clusters: cluster === null ? [] : [{ name, cluster: { server: `https://${name}.example.com`, ...cluster } }],
    users: user === null ? [] : [{ name, user: { token: `token-of-${name}`, ...user } }],
    contexts: [{ name, context: { cluster: name, user: name, ...context } }],
  })
}

const find = (environment: ConnectionEnvironment, looksAtHome = true) =>
  findConnection(environment, { clock, looksAtHome, serviceAccountFolder: join(folder, 'account') })

async function connect(parts: Parts): Promise<Connection> {
  return (await find({ KUBECONFIG: await write('config', aKubeconfig(parts)) }))!
}

async function problemOf(parts: Parts | string): Promise<string> {
  const text = typeof parts === 'string' ? parts : aKubeconfig(parts)
  const error = await find({ KUBECONFIG: await write('config', text) }).catch((reason) => reason)
  expect(error).toBeInstanceOf(KubeconfigError)
  return error.message
}

async function mountServiceAccount(): Promise<ConnectionEnvironment> {
  await write('account/token', 'first-token\n')
  await write('account/ca.crt', authority.certificate)
  await write('account/namespace', 'heartbeat')
  return { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' }
}

describe('a cluster is found', () => {
  it('nowhere when nothing says where', async () => {
    expect(await find({})).toBeNull()
    expect(await find({ HOME: folder, KUBECONFIG: '' })).toBeNull()
    // In a pod without a token.
    expect(await find({ KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' })).toBeNull()
  })

  it('a cluster is found by KUBECONFIG first, then by the ServiceAccount, then in the home folder', async () => {
    const inPod = await mountServiceAccount()
    await write('.kube/config', aKubeconfig({ name: 'home' }))
    const KUBECONFIG = await write('named', aKubeconfig({ name: 'named' }))
    expect(await find({ ...inPod, HOME: folder, KUBECONFIG })).toMatchObject({
      server: 'https://named.example.com',
      source: `context "named" of ${KUBECONFIG}`,
    })
    expect(await find({ ...inPod, HOME: folder })).toMatchObject({ server: 'https://10.96.0.1:443' })
    expect(await find({ HOME: folder })).toMatchObject({ server: 'https://home.example.com' })
    expect(await find({ HOME: folder }, false)).toBeNull()
  })

  it('a cluster is found with its default namespace', async () => {
    expect((await connect({})).namespace).toBe('default')
    expect((await connect({ context: { namespace: 'shop' } })).namespace).toBe('shop')
  })

  it('of several files the first to name an entry wins, as with kubectl, and missing files are skipped', async () => {
    const none = join(folder, 'none')
    const first = await write('first', stringify({ contexts: [{ name: 'b', context: { cluster: 'b', user: 'b' } }] }))
    const second = await write('second', aKubeconfig({ name: 'a' }))
    const third = await write('third', aKubeconfig({ name: 'b', cluster: { server: 'https://third.example.com' } }))
    const fourth = await write('fourth', aKubeconfig({ name: 'b', cluster: { server: 'https://fourth.example.com' } }))
    const chosen = (await find({ KUBECONFIG: [none, first, second, third, fourth].join(':') }))!
    // current-context comes from the second, which was the first to name one.
    expect(chosen.server).toBe('https://a.example.com')
    const other = (await find({ KUBECONFIG: [none, first, third, fourth].join(':') }))!
    expect(other.server).toBe('https://third.example.com')
    expect(other.source).toBe(`context "b" of ${first}`)
  })

  it('under a path and behind a proxy', async () => {
    const connection = await connect({
      cluster: { server: 'https://rancher/k8s/c-1/', 'proxy-url': 'http://proxy:3128' },
    })
    expect(connection).toMatchObject({ server: 'https://rancher/k8s/c-1', proxyUrl: 'http://proxy:3128' })
  })
})

describe('a kubeconfig that is of no use says what is wrong with it', () => {
  const secret = 'cGFzc3dvcmQ-very-secret'

  it('a kubeconfig without any existing file is reported', async () => {
    const path = join(folder, 'none')
    await expect(find({ KUBECONFIG: path })).rejects.toThrow(`KUBECONFIG names ${path}, which is not there.`)
  })

  it('an unreadable kubeconfig is reported', async () => {
    await expect(find({ KUBECONFIG: folder })).rejects.toThrow(`The kubeconfig ${folder} cannot be read (EISDIR).`)
  })

  it('a kubeconfig that is not YAML is reported without quoting it', async () => {
    const message = await problemOf(`users:\n\t- token: ${secret}`)
    expect(message).toBe(
      `${join(folder, 'config')} is not a kubeconfig: it cannot be parsed as YAML (line 2). Fix or replace it.`,
    )
  })

  it.each<[string, Parts | string, RegExp]>([
    ['it is empty', '', /has no current context. Choose one: kubectl config use-context NAME/],
    ['no context is current', { current: '' }, /config has no current context/],
    ['the current context is unknown', { current: 'gone' }, /The context "gone" is not in .*config \(there: ours\)/],
    ['the cluster is missing', { cluster: null }, /context "ours" of .*config needs the cluster "ours"/],
    [
      'the cluster has no server',
      { cluster: { server: '' } },
      /needs the cluster "ours", which is not there or has no server/,
    ],
    ['the user is missing', { user: null }, /needs the user "ours", which is not there/],
    ['the server is no address', { cluster: { server: 'ftp://x' } }, /not an http\(s\) address/],
    ['the proxy is of another kind', { cluster: { 'proxy-url': 'socks5://x' } }, /no other proxy is supported/],
    [
      'the certificate authority is not there',
      { cluster: { 'certificate-authority': 'gone.crt' } },
      /names .*gone\.crt, which cannot be read \(ENOENT\)/,
    ],
    [
      'the certificate authority is no certificate',
      { cluster: { 'certificate-authority-data': base64(secret) } },
      /certificate-authority of the context "ours" of .* is not a PEM certificate/,
    ],
    ['the token file is not there', { user: { tokenFile: 'gone' } }, /names .*gone, which cannot be read \(ENOENT\)/],
    [
      'key and certificate do not belong together',
      {
        user: {
          'client-certificate-data': base64(signClient(authority, 'a', []).certificate),
          'client-key-data': base64(signClient(authority, 'b', []).key),
        },
      },
      /client certificate of the context "ours" of .* do not belong together/,
    ],
  ])('when %s', async (_, parts, expected) => {
    const message = await problemOf(parts)
    expect(message).toMatch(expected)
    expect(message).toContain(join(folder, 'config'))
    expect(message).not.toMatch(/PRIVATE|very-secret|token-of/)
  })
})

describe('credentials', () => {
  const headersOf = async (parts: Parts) => (await (await connect(parts)).readCredentials()).headers

  it('are a token, a name with a password, or whom we act for', async () => {
    expect(await headersOf({})).toEqual({ Authorization: 'Bearer token-of-ours' })
    expect(await headersOf({ user: { token: undefined, username: 'ada', password: 'pw' } })).toEqual({
      Authorization: `Basic ${base64('ada:pw')}`,
    })
    expect(await headersOf({ user: { as: 'jane', 'as-groups': ['dev', 'ops'] } })).toEqual({
      Authorization: 'Bearer token-of-ours',
      'Impersonate-User': 'jane',
      'Impersonate-Group': ['dev', 'ops'],
    })
    expect(
      await headersOf({ user: null, context: { user: '' }, cluster: { server: 'http://127.0.0.1:8001' } }),
    ).toEqual({})
  })

  it('are certificates, from data and from files beside the kubeconfig', async () => {
    const client = signClient(authority, 'jane', [])
    await write('pki/ca.crt', authority.certificate)
    await write('pki/client.crt', client.certificate)
    await write('pki/client.key', client.key)
    const expected = { ca: authority.certificate, cert: client.certificate, key: client.key }
    const fromData = await connect({
      cluster: { 'certificate-authority-data': base64(authority.certificate) },
      user: { 'client-certificate-data': base64(client.certificate), 'client-key-data': base64(client.key) },
    })
    expect((await fromData.readCredentials()).tls).toEqual(expected)
    const fromFiles = await connect({
      cluster: { 'certificate-authority': 'pki/ca.crt', 'tls-server-name': 'kubernetes' },
      user: { 'client-certificate': 'pki/client.crt', 'client-key': 'pki/client.key' },
    })
    expect((await fromFiles.readCredentials()).tls).toEqual({ ...expected, servername: 'kubernetes' })
    const unchecked = await connect({ cluster: { 'insecure-skip-tls-verify': true } })
    expect((await unchecked.readCredentials()).tls).toEqual({ rejectUnauthorized: false })
  })

  it('a token file is read again within a minute, and its last token is kept while the file is missing', async () => {
    await write('token', 'first\n')
    const connection = await connect({ user: { tokenFile: 'token' } })
    const authorization = async () => (await connection.readCredentials()).headers.Authorization
    expect(await authorization()).toBe('Bearer first')
    await write('token', 'second\n')
    await clock.advance(60_000)
    expect(await authorization()).toBe('Bearer second')
    await rm(join(folder, 'token'))
    await clock.advance(60_000)
    expect(await authorization()).toBe('Bearer second')
  })

  it('rejected credentials are read again at once, once for all callers', async () => {
    await write('token', 'first')
    const connection = await connect({ user: { tokenFile: 'token' } })
    const used = await connection.readCredentials()
    await write('token', 'second')
    const [a, b] = await Promise.all([connection.renewCredentials(used), connection.renewCredentials(used)])
    expect(a.headers.Authorization).toBe('Bearer second')
    expect(b).toBe(a)
    await write('token', 'third')
    expect(await connection.renewCredentials(used)).toBe(a)
    expect((await connection.renewCredentials(a)).headers.Authorization).toBe('Bearer third')
  })

  it('keep their TLS part as long as it is the same', async () => {
    await write('ca.crt', authority.certificate)
    const connection = await connect({ cluster: { 'certificate-authority': 'ca.crt' } })
    const first = await connection.readCredentials()
    await clock.advance(60_000)
    const second = await connection.readCredentials()
    expect(second).not.toBe(first)
    expect(second.tls).toBe(first.tls)
    const next = createAuthority('next')
    await write('ca.crt', next.certificate)
    await clock.advance(60_000)
    expect((await connection.readCredentials()).tls).toEqual({ ca: next.certificate })
  })

  it('stay those of the context that was current at the start', async () => {
    const connection = await connect({})
    const used = await connection.readCredentials()
    const own = aKubeconfig({ user: { token: 'new-token' } })
    const two = `${own.replace('current-context: ours', 'current-context: other')}`
    await write(
      'config',
      two.replace('contexts:\n', `contexts:\n  - {name: other, context: {cluster: other, user: other}}\n`),
    )
    expect((await connection.renewCredentials(used)).headers.Authorization).toBe('Bearer new-token')
  })

  it('are not sent to another server than theirs', async () => {
    const connection = await connect({})
    const used = await connection.readCredentials()
    await write('config', aKubeconfig({ cluster: { server: 'https://elsewhere.example.com' } }))
    await expect(connection.renewCredentials(used)).rejects.toThrow(/is another one now. Restart to follow it./)
  })
})

describe('a credential plugin', () => {
  const withPlugin = (command: string, more: object = {}): Parts => ({
    user: { token: undefined, exec: { apiVersion: 'client.authentication.k8s.io/v1', command, ...more } },
  })
  const credential = (token: string) =>
    JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1', kind: 'ExecCredential', status: { token } })

  it('a credential plugin runs once, beside its kubeconfig, with KUBERNETES_EXEC_INFO, and again when its credentials were rejected', async () => {
    await write(
      'bin/plugin',
      `#!/bin/sh\necho run >> ${folder}/runs\nprintf '%s' "$KUBERNETES_EXEC_INFO" > ${folder}/info\nprintf '%s' '${credential('T')}' | sed "s/T/$NAME-$(wc -l < ${folder}/runs | tr -d ' ')/"\n`,
    )
    const connection = await connect(withPlugin('bin/plugin', { env: [{ name: 'NAME', value: 'ada' }] }))
    const first = await connection.readCredentials()
    await clock.advance(60_000)
    expect((await connection.readCredentials()).headers).toEqual(first.headers)
    expect(first.headers).toEqual({ Authorization: 'Bearer ada-1' })
    expect(JSON.parse(await readFile(join(folder, 'info'), 'utf8'))).toEqual({
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      spec: { interactive: false },
    })
    const used = await connection.readCredentials()
    expect((await connection.renewCredentials(used)).headers).toEqual({ Authorization: 'Bearer ada-2' })
  })

  it.each([
    [
      'fails',
      'echo "Token has expired: run sso login" >&2; exit 3',
      /failed. It said: Token has expired: run sso login$/,
    ],
    ['prints no JSON', 'echo geheim-no-json', /printed something else than an ExecCredential/],
    ['prints no credential', `echo '{"token": "geheim"}'`, /printed something else than an ExecCredential/],
  ])('that %s is named, and what it printed is not quoted', async (_, script, expected) => {
    await write('plugin', `#!/bin/sh\n${script}\n`)
    const connection = await connect(withPlugin('./plugin'))
    const error = await connection.readCredentials().catch((reason) => reason)
    expect(error).toBeInstanceOf(KubeconfigError)
    expect(error.message).toMatch(/^The credential plugin ".*plugin" of the context "ours" of /)
    expect(error.message).toMatch(expected)
    expect(`${error.message} ${error.cause}`).not.toContain('geheim')
  })

  it('a credential plugin that is not installed is named', async () => {
    const connection = await connect(withPlugin('no-such-plugin'))
    await expect(connection.readCredentials()).rejects.toThrow(
      /^The credential plugin "no-such-plugin" of the context "ours" of .* cannot be started \(ENOENT\). Install it/,
    )
  })
})

describe("a pod's ServiceAccount", () => {
  it('gives server, namespace, authority and token, and follows the token', async () => {
    const connection = (await find(await mountServiceAccount()))!
    expect(connection).toMatchObject({
      server: 'https://10.96.0.1:443',
      namespace: 'heartbeat',
      source: "the pod's ServiceAccount",
    })
    const first = await connection.readCredentials()
    expect(first).toEqual({
      headers: { Authorization: 'Bearer first-token' },
      tls: { ca: authority.certificate.trim() },
    })
    await write('account/token', 'second-token\n')
    await clock.advance(60_000)
    expect((await connection.readCredentials()).headers).toEqual({ Authorization: 'Bearer second-token' })
  })

  it('may be reached over IPv6', async () => {
    const environment = { ...(await mountServiceAccount()), KUBERNETES_SERVICE_HOST: 'fd00::1' }
    expect((await find(environment))!.server).toBe('https://[fd00::1]:443')
  })

  it('must be whole', async () => {
    const environment = await mountServiceAccount()
    await rm(join(folder, 'account/ca.crt'))
    await expect(find(environment)).rejects.toThrow(/no readable .*ca\.crt \(ENOENT\)/)
    await expect(find(environment)).rejects.toBeInstanceOf(KubeconfigError)
  })
})
