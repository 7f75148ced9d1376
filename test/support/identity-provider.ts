/** A real OpenID Connect provider on loopback (`oidc-provider`), and a browser that logs in to it. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { type Configuration, Provider } from 'oidc-provider'

export const CLIENT = { client_id: 'heartbeat', client_secret: 'a secret of the client that is long enough' }

export interface TestProvider extends AsyncDisposable {
  readonly url: string
  /** Who logs in from now on; null: the provider denies. */
  account: { readonly sub: string; readonly email?: string; readonly email_verified?: boolean } | null
  /** Each request, as `GET /auth`. */
  readonly requests: readonly string[]
  /** Goes where the service sends the browser, logs in, and returns where the provider sends the browser back to. */
  authorize(location: string): Promise<URL>
  close(): Promise<void>
}

export interface TestProviderOptions {
  readonly redirectUris: readonly string[]
  readonly configuration?: Configuration
  readonly client?: object
  readonly port?: number
}

const SCOPE = 'openid email'
const MOST_REDIRECTS = 10

export async function startIdentityProvider(options: TestProviderOptions): Promise<TestProvider> {
  const requests: string[] = []
  const server = createServer()
  server.listen(options.port ?? 0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const provider = new Provider(url, {
    clients: [
      {
        ...CLIENT,
        redirect_uris: [...options.redirectUris],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        id_token_signed_response_alg: 'ES256',
        ...options.client,
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'first' }] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    cookies: { keys: ['a key of the test'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 3_600, Interaction: 60, Session: 60, Grant: 60 },
    findAccount: (_, sub) => ({ accountId: sub, claims: async () => ({ ...found.account, sub }) }),
    async loadExistingGrant({ oidc }) {
      const grant = new provider.Grant({ clientId: oidc.client!.clientId, accountId: oidc.session!.accountId! })
      grant.addOIDCScope(SCOPE)
      await grant.save()
      return grant
    },
    ...options.configuration,
  })
  const handle = provider.callback()
  server.on('request', (request, response) => {
    const { pathname } = new URL(request.url!, url)
    requests.push(`${request.method} ${pathname}`)
    if (!pathname.startsWith('/interaction/')) return void handle(request, response)
    const result =
      found.account === null
        ? { error: 'access_denied', error_description: 'the user has cancelled' }
        : { login: { accountId: found.account.sub } }
    provider.interactionFinished(request, response, result)
  })

  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  const found: TestProvider = {
    url,
    account: { sub: 'ann', email: 'ann@example.com', email_verified: true },
    requests,
    close,
    [Symbol.asyncDispose]: close,
    async authorize(location) {
      const cookies = new Map<string, string>()
      let at = new URL(location)
      for (let hops = 0; at.origin === url; hops += 1) {
        if (hops > MOST_REDIRECTS) throw new Error(`the provider redirects without end, at last to ${at}`)
        const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
        const response = await fetch(at, { redirect: 'manual', headers: { cookie } })
        for (const line of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line)!
          cookies.set(name, value)
        }
        const next = response.headers.get('location')
        if (next === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`)
        at = new URL(next, at)
      }
      return at
    },
  }
  return found
}
