/** The client on a real API server: its credentials may change while it runs, and it opens few connections. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { KubernetesClient } from '../../src/kubernetes/client.ts'
import { ApiError } from '../../src/kubernetes/errors.ts'
import { cluster } from '../support/cluster.ts'
import { clientOf, connectionOf } from '../support/operator.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { eventually } from '../support/until.ts'

const CONFIG_MAPS = { group: '', version: 'v1', plural: 'configmaps' }
const WHO = '/apis/authentication.k8s.io/v1/selfsubjectreviews'

const connectBy = async (kubeconfigPath: string) => clientOf(await connectionOf(kubeconfigPath))

async function askWho(client: KubernetesClient): Promise<string> {
  const review = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
  const answer = (await client.raw('POST', WHO, review)) as { status: { userInfo: { username: string } } }
  return answer.status.userInfo.username
}

async function watchOnce(client: KubernetesClient, namespace: string): Promise<void> {
  const { resourceVersion } = await client.list(CONFIG_MAPS, { namespace, limit: 1 })
  const options = { namespace, resourceVersion, timeoutSeconds: 1, signal: AbortSignal.timeout(20_000) }
  for await (const _ of client.watch(CONFIG_MAPS, options));
}

describe('the client', () => {
  it('keeps to three connections at most, and to one more for each watch', async () => {
    await using namespace = await cluster.makeNamespace()
    await using proxy = await startTcpProxy(Number(new URL(cluster.server).port))
    const credential = { token: cluster.adminToken }
    await using client = await connectBy(await cluster.writeKubeconfig({ credential, server: proxy.url }))
    for (let n = 0; n < 100; n += 1) await client.list(CONFIG_MAPS, { namespace: namespace.name, limit: 1 })
    await Promise.all(
      Array.from({ length: 200 }, () => client.list(CONFIG_MAPS, { namespace: namespace.name, limit: 1 })),
    )
    const { accepted, open } = proxy.count()
    expect(open).toBe(accepted)
    expect(accepted).toBeLessThanOrEqual(3)
    for (let n = 0; n < 3; n += 1) await watchOnce(client, namespace.name)
    expect(proxy.count()).toEqual({ accepted: accepted + 1, open: open + 1 })
  })

  it('is let in by a certificate', async () => {
    await using client = await connectBy(
      await cluster.writeKubeconfig({ credential: await cluster.certifyUser('jane', ['ops']) }),
    )
    expect(await askWho(client)).toBe('jane')
  })

  it('goes on when its token has expired and there is a new one', async () => {
    await using namespace = await cluster.makeNamespace()
    const metadata = { name: 'robot', namespace: namespace.name }
    await cluster.applyManifest({ apiVersion: 'v1', kind: 'ServiceAccount', metadata })
    const account = `${namespace.name}/robot`
    const tokenFile = join(cluster.folder, `token-${namespace.name}`)
    // The server grants a minute after the end, and remembers whom it let in for 10 s.
    await writeFile(tokenFile, await cluster.signToken(account, -50))
    await using client = await connectBy(await cluster.writeKubeconfig({ credential: { tokenFile } }))
    const robot = `system:serviceaccount:${namespace.name}:robot`
    expect(await askWho(client)).toBe(robot)
    const refusal = await eventually(
      'the token expires',
      () =>
        askWho(client).then(
          () => null,
          (error) => error,
        ),
      45_000,
    )
    expect(refusal).toBeInstanceOf(ApiError)
    expect(refusal).toMatchObject({ status: 401, reason: 'Unauthorized' })
    await writeFile(tokenFile, `${await cluster.signToken(account, 600)}\n`)
    expect(await askWho(client)).toBe(robot)
  })

  it('gives the words of the API server on: field and reason', async () => {
    await using namespace = await cluster.makeNamespace()
    await using client = await connectBy(cluster.kubeconfigPath)
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { namespace: namespace.name, name: 'A' } }
    const error = await client.create(CONFIG_MAPS, object).catch((reason) => reason)
    expect(error.message).toMatch(/^ConfigMap "A" is invalid: metadata\.name: Invalid value: "A": a lowercase RFC 1123/)
    expect(error).toMatchObject({ status: 422, reason: 'Invalid', details: { causes: [{ field: 'metadata.name' }] } })
  })
})
