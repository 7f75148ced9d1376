/**
 * The first program in the box (`box.sh`): starts a control plane, a container runtime, kubelet, scheduler, proxy and DNS. Its
 * argument is `BoxSettings` in JSON; its only line of output is the ClusterAccess in JSON, when pods can run. It stays until
 * the box ends.
 */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventually } from '../../../test/support/until.ts'
import type { NodeProgramName, ProgramName, Programs } from '../../programs/programs.ts'
import { startControlPlane } from '../control-plane.ts'
import { type ClusterAccess, certifyUser, requestApi, writeKubeconfig } from '../control-plane-access.ts'
import { createAuthority, signClient } from '../control-plane-certificates.ts'
import { openHome, type ProgramProcess, quoteLog, startProgram } from '../control-plane-process.ts'
import { askRuntime, importImage } from './containerd.ts'
import {
  DNS_RIGHTS,
  describeContainerd,
  describeDns,
  describeKubelet,
  describeNetwork,
  kubeletFlags,
  NODE_ADDRESS,
  NODE_NAME,
  proxyFlags,
  schedulerFlags,
} from './settings.ts'

export interface BoxSettings {
  /** All that the node has and keeps, with TMPDIR in it; gone with the box. */
  readonly folder: string
  readonly logs: string
  readonly programs: Programs<ProgramName | NodeProgramName>
  readonly containerd: string
  readonly ctr: string
  readonly coredns: string
  /** The folder of the CNI plugins. */
  readonly plugins: string
  /** Of Debian's programs that lie in a folder of their own. */
  readonly environment: Readonly<Record<string, string>>
  readonly crds: readonly string[]
  /** OCI archives. */
  readonly images: readonly string[]
}

const START_MS = 120_000

const settings = JSON.parse(process.argv[2] ?? '{}') as BoxSettings
const { folder, logs, programs, environment } = settings
const at = (...names: string[]) => join(folder, ...names)

/** Ends the box, and with it everything in it. */
function fail(error: unknown): void {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exit(1)
}

async function start(): Promise<ClusterAccess> {
  const home = await openHome({ logs })
  const onLost = async (program: ProgramProcess) => fail(`${program.name} ended by itself; ${await quoteLog(program)}`)
  const run = (name: string, path: string, args: readonly string[]) =>
    startProgram({ name, path, args, home, environment, onLost })

  await mkdir(at('cni'))
  await writeFile(at('cni', '10-pods.conflist'), describeNetwork())
  await writeFile(at('containerd.toml'), describeContainerd(folder, settings.plugins))
  run('containerd', settings.containerd, [`--config=${at('containerd.toml')}`])

  const kubelets = createAuthority('heartbeat-kubelet-clients')
  const server = signClient(kubelets, 'kube-apiserver', ['system:masters'])
  await writeSecrets({ 'kubelet-ca.crt': kubelets.certificate, 'kubelet-client.crt': server.certificate })
  await writeSecrets({ 'kubelet-client.key': server.key })
  const apiserverFlags = [
    `--kubelet-client-certificate=${at('kubelet-client.crt')}`,
    `--kubelet-client-key=${at('kubelet-client.key')}`,
    ...['--kubelet-preferred-address-types=InternalIP', '--allow-privileged'],
  ]
  const [access] = await Promise.all([
    startControlPlane({
      ...{ programs, crds: settings.crds, address: NODE_ADDRESS, apiserverFlags },
      ...{ logFolder: logs, onLost: fail },
    }),
    importImages(),
  ])
  for (const object of DNS_RIGHTS) await createObject(access, object)
  for (const [name, user, ...groups] of USERS)
    await writeKubeconfig(access, {
      credential: await certifyUser(access, user, groups),
      path: at(`${name}.kubeconfig`),
    })

  await mkdir(at('kubelet'))
  await writeFile(at('kubelet.yaml'), describeKubelet(folder, at('kubelet-ca.crt')))
  await writeFile(at('Corefile'), describeDns(folder))
  run('kubelet', programs.paths.kubelet, kubeletFlags(folder))
  run('kube-scheduler', programs.paths['kube-scheduler'], schedulerFlags(folder))
  run('kube-proxy', programs.paths['kube-proxy'], proxyFlags(folder))
  run('coredns', settings.coredns, [`-conf=${at('Corefile')}`])
  await eventually('the node is ready', () => isReady(access), START_MS)
  const { kubeconfigPath, caPath, adminToken, kubectlPath } = access
  return { server: access.server, folder: access.folder, kubeconfigPath, caPath, adminToken, kubectlPath }
}

/** Kubeconfig, user, groups. */
const USERS: readonly (readonly [string, string, ...string[]])[] = [
  ['kubelet', `system:node:${NODE_NAME}`, 'system:nodes'],
  ['kube-scheduler', 'system:kube-scheduler'],
  ['kube-proxy', 'system:kube-proxy'],
  ['coredns', 'coredns'],
]

async function writeSecrets(files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) await writeFile(at(name), text, { mode: 0o600 })
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1'

async function createObject(access: ClusterAccess, object: (typeof DNS_RIGHTS)[number]): Promise<void> {
  const path = `${RBAC}/${object.kind.toLowerCase()}s`
  const answer = await requestApi(access, path, { method: 'POST', body: object })
  if (answer.status >= 300) throw new Error(`the API server refused ${object.kind} coredns: ${answer.body.message}`)
}

async function importImages(): Promise<void> {
  const runtime = { ctr: settings.ctr, folder, environment }
  await eventually('containerd responds', () => askRuntime(runtime).then(() => true), START_MS)
  for (const image of settings.images) await importImage(runtime, image)
}

async function isReady(access: ClusterAccess): Promise<boolean> {
  const { body } = await requestApi(access, `/api/v1/nodes/${NODE_NAME}`)
  const conditions: { type: string; status: string }[] = body.status?.conditions ?? []
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True')
}

start().then((access) => {
  process.stdout.write(`${JSON.stringify(access)}\n`)
  setInterval(() => {}, 2 ** 30) // the box lasts as long as this
}, fail)
