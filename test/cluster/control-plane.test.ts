/** The test bed itself: what the other tests of the lane rely on. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { identifyProcess } from '../../src/embedded-postgres/processes.ts'
import { type Cluster, cluster, openCluster, waitFor } from '../support/cluster.ts'
import { type ControlPlane, startControlPlane } from './control-plane.ts'
import { readServedCertificate } from './control-plane-access.ts'

/** A kind of its own, to see that CRDs given at the start are there when the controllers start. */
const WIDGETS = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test-bed.example}
spec:
  group: test-bed.example
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {min: {type: integer}, max: {type: integer}}
              x-kubernetes-validations: [{rule: self.min <= self.max, message: min must not exceed max}]
`
const aWidget = (name: string, min = 1) => ({
  apiVersion: 'test-bed.example/v1',
  kind: 'Widget',
  metadata: { name },
  spec: { min, max: 5 },
})
const widgetsOf = (namespace: string) => `/apis/test-bed.example/v1/namespaces/${namespace}/widgets`
const mapsOf = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`

describe('the shared control plane', () => {
  it('lets in the admin, service accounts and users by certificate, and nobody else', async () => {
    await using ns = await cluster.makeNamespace()
    await cluster.applyManifest({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot', namespace: ns.name },
    })
    const robot = `system:serviceaccount:${ns.name}:robot`
    expect(await askWho({ token: cluster.adminToken })).toBe('admin')
    expect(await askWho({ token: await cluster.tokenFor(`${ns.name}/robot`) })).toBe(robot)
    expect(await askWho({ token: await cluster.signToken(`${ns.name}/robot`, 30) })).toBe(robot)
    expect(await askWho(await cluster.certifyUser('jane', ['ops']))).toBe('jane')
    const late = await cluster.signToken(`${ns.name}/robot`, -60)
    await expect(askWho({ token: late })).rejects.toThrow('must be logged in')
    await expect(askWho({ token: 'nobody' })).rejects.toThrow('must be logged in')
    const asJane = { kubeconfigPath: await cluster.writeKubeconfig({ credential: await cluster.certifyUser('jane') }) }
    await expect(cluster.kubectlWith(asJane, 'get', 'secrets')).rejects.toThrow('User "jane" cannot list resource')
  })

  it('collects what an owner leaves behind, and empties a namespace that is deleted', async () => {
    const ns = await cluster.makeNamespace()
    const maps = mapsOf(ns.name)
    const owner = (await cluster.api('POST', maps, { metadata: { name: 'owner' } })).body
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid }]
    await cluster.api('POST', maps, { metadata: { name: 'owned', ownerReferences } })
    await cluster.api('DELETE', `${maps}/owner`)
    await waitFor('the garbage collector', async () => (await cluster.api('GET', `${maps}/owned`)).status === 404)
    await cluster.api('POST', maps, { metadata: { name: 'left' } })
    await ns.remove()
    const isGone = async () => (await cluster.api('GET', `/api/v1/namespaces/${ns.name}`)).status === 404
    await waitFor('the namespace controller', isGone, 20_000)
  })

  it('keeps a lease, and refuses a write that is behind', async () => {
    await using ns = await cluster.makeNamespace()
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${ns.name}/leases`
    const spec = { holderIdentity: 'me', leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.000000Z' }
    const made = await cluster.api('POST', leases, { metadata: { name: 'leader' }, spec })
    expect([made.status, made.body.spec.renewTime]).toEqual([201, spec.renewTime])
    expect((await cluster.api('PUT', `${leases}/leader`, made.body)).status).toBe(200)
    await cluster.api('PATCH', `${leases}/leader`, { spec: { holderIdentity: 'you' } })
    expect((await cluster.api('PUT', `${leases}/leader`, made.body)).status).toBe(409)
  })

  it('tells a failed kubectl by what kubectl said', async () => {
    await expect(cluster.applyManifest({ apiVersion: 'v1', kind: 'Nothing', metadata: { name: 'x' } })).rejects.toThrow(
      /kubectl apply -f - failed .*no matches for kind "Nothing"/s,
    )
  })
})

describe('control planes of a test', () => {
  let plane: ControlPlane
  let own: Cluster
  let other: ControlPlane

  beforeAll(async () => {
    const file = join(cluster.folder, 'widgets.yaml')
    await writeFile(file, WIDGETS)
    ;[plane, other] = await Promise.all([startControlPlane({ crds: [file] }), startControlPlane()])
    own = openCluster(plane)
  })
  afterAll(() => Promise.all([plane?.stop(), other?.stop()]))

  it('run side by side and share nothing', async () => {
    expect(new Set([cluster, plane, other].map(({ server }) => server)).size).toBe(3)
    await own.api('POST', '/api/v1/namespaces', { metadata: { name: 'here' } })
    expect((await own.api('GET', '/api/v1/namespaces/here')).status).toBe(200)
    expect((await openCluster(other).api('GET', '/api/v1/namespaces/here')).status).toBe(404)
    await expect(openCluster({ ...other, caPath: plane.caPath }).api('GET', '/version')).rejects.toThrow('certificate')
  })

  it('have the CRDs from the start, and the garbage collector knows their kinds', async () => {
    const path = widgetsOf('default')
    const refused = await own.api('POST', path, aWidget('wrong', 9))
    expect([refused.status, refused.body.message]).toEqual([422, expect.stringContaining('min must not exceed max')])
    const widget = (await own.api('POST', path, aWidget('owner'))).body
    const ownerReferences = [{ apiVersion: widget.apiVersion, kind: 'Widget', name: 'owner', uid: widget.metadata.uid }]
    await own.api('POST', mapsOf('default'), { metadata: { name: 'owned', ownerReferences } })
    await own.api('DELETE', `${path}/owner`)
    const isGone = async () => (await own.api('GET', `${mapsOf('default')}/owned`)).status === 404
    await waitFor('the garbage collector', isGone, 5000)
  })

  it('keep their data and address over a restart', async () => {
    await own.api('POST', widgetsOf('default'), aWidget('kept'))
    const { server } = plane
    await plane.stopApiServer()
    await expect(own.api('GET', '/version')).rejects.toThrow('ECONNREFUSED')
    await plane.startApiServer()
    expect(plane.server).toBe(server)
    expect((await own.api('GET', `${widgetsOf('default')}/kept`)).status).toBe(200)
  })

  it('answer 410 to a list and a watch from before their history was forgotten', async () => {
    const page = (await own.api('GET', '/api/v1/namespaces?limit=1')).body
    expect(page.items).toHaveLength(1)
    await own.api('POST', mapsOf('default'), { metadata: { name: 'newer' } })
    await plane.forgetHistory()
    const next = await own.api('GET', `/api/v1/namespaces?limit=1&continue=${page.metadata.continue}`)
    expect([next.status, next.body.reason]).toEqual([410, 'Expired'])
    const since = page.metadata.resourceVersion
    const watch = await own.api('GET', `/api/v1/namespaces?watch=1&resourceVersion=${since}&timeoutSeconds=1`)
    expect(watch.body).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } })
  })

  it('hold every answer while the server is paused', async () => {
    plane.pauseApiServer()
    let isAnswered = false
    const answer = own.api('GET', '/version').then(({ status }) => {
      isAnswered = true
      return status
    })
    await new Promise((resolve) => setTimeout(resolve, 200))
    expect(isAnswered).toBe(false)
    plane.resumeApiServer()
    expect(await answer).toBe(200)
  })

  it('serve a new certificate without a restart', async () => {
    const followed = await own.writeKubeconfig({ credential: { token: plane.adminToken }, authority: 'file' })
    const embedded = await own.writeKubeconfig({ credential: { token: plane.adminToken } })
    const read = (kubeconfigPath: string) => own.kubectlWith({ kubeconfigPath }, 'get', 'namespaces', '-o', 'name')
    const authority = await readFile(plane.caPath, 'utf8')
    const first = await readServedCertificate(plane.port)

    await plane.rotateCertificate()
    const second = await readServedCertificate(plane.port)
    expect(second).not.toBe(first)
    expect(await readFile(plane.caPath, 'utf8')).toBe(authority)
    expect(await read(embedded)).toContain('default')

    await plane.rotateCertificate({ authority: 'new' })
    expect([first, second]).not.toContain(await readServedCertificate(plane.port))
    await expect(read(embedded)).rejects.toThrow('certificate signed by unknown authority')
    expect(await read(followed)).toContain('default')
    expect(await own.kubectl('get', 'namespaces', '-o', 'name')).toContain('default')
    const map = await own.api('GET', `${mapsOf('default')}/kube-root-ca.crt`)
    expect(map.body.data['ca.crt']).toBe(await readFile(plane.caPath, 'utf8'))
  })

  it('lose everything but address, tokens and CRDs when etcd is emptied', async () => {
    const readUid = async () => (await own.api('GET', '/api/v1/namespaces/kube-system')).body.metadata.uid
    const [uid, { server, adminToken }] = [await readUid(), plane]
    await plane.emptyEtcd()
    expect([plane.server, plane.adminToken]).toEqual([server, adminToken])
    expect(await readUid()).not.toBe(uid)
    expect((await own.api('GET', widgetsOf('default'))).body.items).toEqual([])
    expect((await own.api('POST', widgetsOf('default'), aWidget('again'))).status).toBe(201)
  })
})

it('leaves no process and no folder when the one that started it is killed', async () => {
  const script = `
    const { startControlPlane } = await import(${JSON.stringify(new URL('./control-plane.ts', import.meta.url).href)})
    console.log((await startControlPlane()).folder)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [folder] = await once(createInterface(child.stdout), 'line')
  const files = ['etcd', 'kube-apiserver', 'kube-controller-manager'].map((name) => join(folder, 'pids', name))
  const pids = await Promise.all(files.map(async (file) => Number(await readFile(file, 'utf8'))))
  const listAlive = async () => (await Promise.all(pids.map(identifyProcess))).filter((one) => one !== null)
  expect(await listAlive()).toHaveLength(3)
  child.kill('SIGKILL')
  await waitFor('its processes are gone', async () => (await listAlive()).length === 0)
  await waitFor('the folder is gone', () => !existsSync(folder))
})

/** Who the API server says that this is. */
async function askWho(credential: Parameters<Cluster['writeKubeconfig']>[0]['credential']): Promise<string> {
  const kubeconfigPath = await cluster.writeKubeconfig({ credential })
  return cluster.kubectlWith({ kubeconfigPath }, 'auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username}')
}
