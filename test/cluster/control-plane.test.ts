import { expect, it } from 'vitest'
import { cluster, waitFor } from '../support/cluster.ts'

it('answers', async () => {
  expect(await cluster.kubectl('get', 'namespaces', '-o', 'name')).toContain('namespace/kube-system')
  await using ns = await cluster.makeNamespace()
  console.log(
    await cluster.applyManifest({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot', namespace: ns.name },
    }),
  )
  const who = async (token: string) =>
    await cluster.kubectlWith(
      { kubeconfigPath: await cluster.writeKubeconfig({ credential: { token } }) },
      'auth',
      'whoami',
      '-o',
      'jsonpath={.status.userInfo.username}',
    )
  expect(await who(await cluster.tokenFor(`${ns.name}/robot`))).toBe(`system:serviceaccount:${ns.name}:robot`)
  expect(await who(await cluster.signToken(`${ns.name}/robot`, 30))).toBe(`system:serviceaccount:${ns.name}:robot`)
  await expect(who(await cluster.signToken(`${ns.name}/robot`, -60))).rejects.toThrow(/nauthorized|logged in/)
  const credential = await cluster.certifyUser('jane', ['a', 'b'])
  console.log(
    await cluster.kubectlWith(
      { kubeconfigPath: await cluster.writeKubeconfig({ credential, authority: 'file' }) },
      'auth',
      'whoami',
    ),
  )
  await waitFor('x', () => true)
})
