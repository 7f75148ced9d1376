/** The secrets of one control plane: authorities, serving certificate, tokens, the key of service accounts' tokens. */

import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { clientAuthorityFile, serviceAccountKeyFile } from './control-plane-access.ts'
import { type Authority, createAuthority, signServer } from './control-plane-certificates.ts'

export interface Keys {
  /** Of what serves; clients trust it. */
  readonly caPath: string
  readonly serverCertificate: string
  readonly serverKey: string
  readonly clientCaPath: string
  readonly serviceAccountKey: string
  readonly tokensFile: string
  readonly adminToken: string
  readonly controllersToken: string
}

const HOSTS = ['127.0.0.1', 'localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']

/** Makes what is not there yet; a folder that was kept keeps its secrets. `hosts`: more that the server is called by. */
export async function prepareKeys(folder: string, hosts: readonly string[] = []): Promise<Keys> {
  const at = (name: string) => join(folder, 'keys', name)
  const keys = {
    caPath: at('ca.crt'),
    serverCertificate: at('server.crt'),
    serverKey: at('server.key'),
    clientCaPath: at('client-ca.crt'),
    serviceAccountKey: serviceAccountKeyFile(folder),
    tokensFile: at('tokens.csv'),
  }
  const tokens = await readTokens(keys.tokensFile)
  if (tokens === null) {
    const clients = createAuthority('heartbeat-clients')
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await writeSecret(keys.serviceAccountKey, privateKey.export({ format: 'pem', type: 'sec1' }).toString())
    await writeSecret(clientAuthorityFile(folder), JSON.stringify(clients))
    await writeSecret(keys.clientCaPath, clients.certificate)
    await replaceAuthority(folder, keys, hosts)
    const made = { adminToken: makeToken(), controllersToken: makeToken() }
    // One line a token: token,user,uid,"groups".
    const lines = [
      `${made.adminToken},admin,admin,"system:masters"`,
      `${made.controllersToken},system:kube-controller-manager,system:kube-controller-manager,""`,
    ]
    await writeSecret(keys.tokensFile, `${lines.join('\n')}\n`)
    return { ...keys, ...made }
  }
  return { ...keys, ...tokens }
}

type Tokens = Pick<Keys, 'adminToken' | 'controllersToken'>

async function readTokens(file: string): Promise<Tokens | null> {
  try {
    const [adminToken = '', controllersToken = ''] = (await readFile(file, 'utf8'))
      .split('\n')
      .map((line) => line.split(',')[0])
    return { adminToken, controllersToken }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

const makeToken = () => randomBytes(16).toString('hex')
const authorityFile = (folder: string) => join(folder, 'keys', 'authority.json')
type Serving = Pick<Keys, 'caPath' | 'serverCertificate' | 'serverKey'>

/** A new authority and a serving certificate by it: who trusts only the old one refuses the server from now on. */
export async function replaceAuthority(folder: string, keys: Serving, hosts: readonly string[] = []): Promise<void> {
  const authority = createAuthority(`heartbeat-${randomBytes(4).toString('hex')}`)
  await writeSecret(authorityFile(folder), JSON.stringify(authority))
  await writeSecret(keys.caPath, authority.certificate)
  await replaceServerCertificate(folder, keys, hosts)
}

/** A new serving certificate by the same authority. The API server takes it over as soon as it sees the files change. */
export async function replaceServerCertificate(
  folder: string,
  keys: Serving,
  hosts: readonly string[] = [],
): Promise<void> {
  const authority = JSON.parse(await readFile(authorityFile(folder), 'utf8')) as Authority
  const { certificate, key } = signServer(authority, [...HOSTS, ...hosts])
  await writeSecret(keys.serverKey, key)
  await writeSecret(keys.serverCertificate, certificate)
}

/** Whole or not at all: the API server and clients read these files when they change. */
async function writeSecret(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text, { mode: 0o600 })
  await rename(`${path}.new`, path)
}
