/** The real Alertmanager, on loopback, with everything of its own. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pickPort } from '../../tools/cluster/control-plane-ports.ts'
import {
  openHome,
  type ProgramHome,
  type ProgramProcess,
  quoteLog,
  startProgram,
} from '../../tools/cluster/control-plane-process.ts'
import { copyTemplates, findAlertmanager } from '../../tools/programs/alertmanager-program.ts'
import { eventually } from './until.ts'

/** As `GET /api/v2/alerts` shows it: only what fires. */
export interface ShownAlert {
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  readonly startsAt: string
  readonly endsAt: string
  readonly generatorURL: string
}

export interface Alertmanager extends AsyncDisposable {
  readonly url: string
  /** What fires, in the order of `check`. */
  alerts(): Promise<readonly ShownAlert[]>
  /** Resolves with what `find` finds in them; fails with what there was instead. */
  waitFor<T>(what: string, find: (alerts: readonly ShownAlert[]) => T | undefined | false): Promise<T>
  /** How many peers it knows, itself included. */
  countPeers(): Promise<number>
  /** kill -9. */
  kill(): Promise<void>
  /** Again on the same ports, with an empty memory. */
  start(): Promise<void>
}

export interface AlertmanagerOptions {
  /** Default 1; more are peers of one cluster. */
  readonly count?: number
  /** Where notifications go; default: nowhere. */
  readonly webhookUrl?: string
}

const PATIENCE_MS = 45_000

/** Started, and those of a cluster know each other. They end with the process that started them. */
export async function startAlertmanagers({
  count = 1,
  webhookUrl,
}: AlertmanagerOptions = {}): Promise<AsyncDisposable & { readonly peers: readonly Alertmanager[] }> {
  const path = await findAlertmanager()
  const home = await openHome()
  // Its working folder.
  await copyTemplates(path, home.path)
  const config = join(home.path, 'alertmanager.yml')
  const receiver = webhookUrl === undefined ? {} : { webhook_configs: [{ url: webhookUrl, send_resolved: true }] }
  const route = { receiver: 'test', group_by: ['...'], group_wait: '100ms', group_interval: '500ms' }
  // JSON is YAML.
  await writeFile(config, JSON.stringify({ route, receivers: [{ name: 'test', ...receiver }] }))
  const clusterPorts = count === 1 ? [] : await Promise.all(Array.from({ length: count }, pickPort))
  const peers = await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const port = await pickPort()
      const args = [
        `--config.file=${config}`,
        `--storage.path=${join(home.path, `data-${index}`)}`,
        `--web.listen-address=127.0.0.1:${port}`,
        `--cluster.listen-address=${count === 1 ? '' : `127.0.0.1:${clusterPorts[index]}`}`,
        ...clusterPorts.filter((_, other) => other !== index).map((other) => `--cluster.peer=127.0.0.1:${other}`),
        // A peer that is not the first waits so long for the others' notifications.
        '--cluster.peer-timeout=1s',
        '--cluster.settle-timeout=1s',
        '--cluster.reconnect-interval=500ms',
      ]
      return makeAlertmanager(`http://127.0.0.1:${port}`, { name: `alertmanager-${index}`, path, args, home })
    }),
  )
  const dispose = async () => {
    await Promise.all(peers.map((peer) => peer.kill()))
    await home.close()
  }
  try {
    await Promise.all(peers.map((peer) => peer.start()))
    for (const peer of peers)
      if (count > 1)
        await eventually('the peers see each other', async () => (await peer.countPeers()) === count, PATIENCE_MS)
  } catch (error) {
    await dispose()
    throw error
  }
  return { peers, [Symbol.asyncDispose]: dispose }
}

function makeAlertmanager(
  url: string,
  program: { name: string; path: string; args: readonly string[]; home: ProgramHome },
): Alertmanager {
  let running: ProgramProcess | null = null

  async function get<T>(path: string): Promise<T> {
    const response = await fetch(url + path)
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`)
    return (await response.json()) as T
  }

  async function alerts(): Promise<readonly ShownAlert[]> {
    const shown = await get<ShownAlert[]>('/api/v2/alerts')
    return shown.sort((a, b) => (a.labels.check ?? '').localeCompare(b.labels.check ?? ''))
  }

  async function kill(): Promise<void> {
    await running?.kill()
    running = null
  }

  return {
    url,
    alerts,
    kill,
    async start() {
      const started = startProgram({ ...program, onLost: () => {} })
      running = started
      await eventually(
        `${program.name} is ready`,
        async () => {
          if (started.hasEnded()) throw new Error(`${program.name} ended: ${await quoteLog(started)}`)
          return (await fetch(`${url}/-/ready`).catch(() => null))?.ok
        },
        { withinMs: PATIENCE_MS, retryErrors: false },
      )
    },
    waitFor: (what, find) =>
      eventually(
        what,
        async () => {
          const seen = await alerts()
          const found = find(seen)
          if (!found) throw new Error(`it has ${JSON.stringify(seen)}`)
          return found
        },
        PATIENCE_MS,
      ),
    async countPeers() {
      const { cluster } = await get<{ cluster: { peers?: unknown[] } }>('/api/v2/status')
      return cluster.peers?.length ?? 0
    },
    [Symbol.asyncDispose]: kill,
  }
}
