/** What the story plays on: a node with our images, kubectl and helm; and what is kept of it when the story fails. */

import { execFile } from 'node:child_process'
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { type ClusterNode, startNode } from '../../tools/cluster/node/node.ts'
import { buildImages } from '../../tools/images/images.ts'
import { findTool } from '../../tools/programs/tools.ts'
import { type Cluster, openCluster } from '../support/cluster-client.ts'

export interface Stage extends Cluster, AsyncDisposable {
  /** Resolves with its stdout; throws with what it said when it fails. */
  helm(...args: string[]): Promise<string>
  /** A shell's command line, as a person types it: `kubectl` and `helm` are there, and know the cluster. */
  shell(command: string): Promise<string>
  /** A PersistentVolume of the node that any claim may have, for a pod of this user. */
  makeVolume(name: string, user: number): Promise<void>
  /** Writes down what is there: objects, events, logs of pods and of the node's programs. Resolves with the folder. */
  keepLogs(): Promise<string>
}

const COMMAND_MS = 900_000

/** Builds what is missing, then starts the node. */
export async function openStage(): Promise<Stage> {
  const images = await buildImages({ names: ['pause', 'heartbeat-operator', 'postgres', 'job'] })
  const helmPath = await findTool('helm')
  const folder = await mkdtemp(join(tmpdir(), 'heartbeat-e2e-'))
  const logFolder = join(folder, 'node')
  await mkdir(logFolder)
  let node: ClusterNode
  try {
    node = await startNode({ images: [...images.values()], logFolder })
  } catch (error) {
    throw new Error(`the node did not start; its programs' logs are kept in ${logFolder}`, { cause: error })
  }
  const cluster = openCluster(node)
  const home = join(folder, 'home')
  await mkdir(home)
  const environment = {
    PATH: [dirname(helmPath), dirname(node.kubectlPath), process.env.PATH].join(delimiter),
    // Where both keep what they like to keep; nothing of the person who runs the tests.
    HOME: home,
    KUBECONFIG: node.kubeconfigPath,
    HELM_CACHE_HOME: join(home, 'helm-cache'),
    HELM_CONFIG_HOME: join(home, 'helm-config'),
    HELM_DATA_HOME: join(home, 'helm-data'),
  }
  let isKept = false
  const closing = new AbortController()

  const run = (command: string, args: readonly string[]) =>
    new Promise<string>((resolve, reject) => {
      const options = { env: environment, maxBuffer: 64 * 2 ** 20, timeout: COMMAND_MS, signal: closing.signal }
      execFile(command, args, options, (error, stdout, stderr) => {
        if (error === null) return resolve(stdout)
        const said = `${stdout}${stderr}`.trim()
        reject(new Error(`${[command, ...args].join(' ')} failed (${error.code}): ${said}`, { cause: error }))
      })
    })

  async function keepLogs(): Promise<string> {
    isKept = true
    const write = async (name: string, text: Promise<string>) =>
      writeFile(join(folder, name), await text.catch((error) => `${error}`))
    await write('objects.txt', cluster.kubectl('get', KINDS, '--all-namespaces', '--output=wide'))
    await write('events.txt', cluster.kubectl('get', 'events', '--all-namespaces', '--sort-by=.lastTimestamp'))
    await write('pods.txt', cluster.kubectl('describe', 'pods', '--all-namespaces'))
    await mkdir(join(folder, 'pods'), { recursive: true })
    const { body } = await cluster.api('GET', '/api/v1/pods').catch(() => ({ body: { items: [] } }))
    for (const { metadata } of body.items as { metadata: { namespace: string; name: string } }[]) {
      const of = ['--namespace', metadata.namespace, metadata.name, '--all-containers', '--timestamps']
      await write(join('pods', `${metadata.namespace}-${metadata.name}.log`), cluster.kubectl('logs', ...of))
    }
    return folder
  }

  async function close(): Promise<void> {
    closing.abort()
    await node.stop()
    if (!isKept) await rm(folder, { recursive: true, force: true })
    else await rm(home, { recursive: true, force: true })
  }

  return {
    ...cluster,
    helm: (...args) => run(helmPath, args),
    shell: (command) => run('/bin/sh', ['-c', command]),
    async makeVolume(name, user) {
      const path = join(node.volumes, name)
      await mkdir(path)
      await chown(path, user, user)
      await chmod(path, 0o700)
      const spec = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path } }
      await cluster.applyManifest({ apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec })
    },
    keepLogs,
    [Symbol.asyncDispose]: close,
  }
}

const KINDS = 'nodes,pods,deployments,statefulsets,cronjobs,jobs,services,pvc,pv,leases,heartbeatchecks'
