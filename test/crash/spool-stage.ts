/** A database that replicas with a spool reach through a line that a test cuts. */

import { ask } from '../support/sent-pings.ts'
import { type ServiceProcess, spawnService } from '../support/service-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { type Ledger, openLedger } from './ledger.ts'

export interface Line extends AsyncDisposable {
  /** Of the database at its end. */
  readonly url: string
  /** New connections are refused, open ones are reset. */
  cut(): void
  mend(): Promise<void>
}

/** `port`: where the database is now; default: that of its URL. */
export async function openLine(databaseUrl: string, port?: () => number): Promise<Line> {
  const url = new URL(databaseUrl)
  const proxy = await startTcpProxy(port ?? Number(url.port))
  url.host = `127.0.0.1:${proxy.port}`
  return {
    url: url.href,
    cut() {
      proxy.refuse()
      proxy.reset()
    },
    mend: proxy.accept,
    [Symbol.asyncDispose]: proxy.close,
  }
}

export const SPOOL_BYTES = 67_108_864
export const spoolIn = (folder: string, maxBytes = SPOOL_BYTES) => ({
  SPOOL_DIR: folder,
  SPOOL_MAX_BYTES: String(maxBytes),
  RATE_LIMIT_PER_MINUTE: '1000000',
})

/** How many pings wait in the spool, by the metrics of the process. */
export async function countSpooled({ ops }: { readonly ops: string }): Promise<number> {
  const { text } = await ask(`${ops}/metrics`)
  return Number(/^heartbeat_spool_pings (\d+)$/m.exec(text)?.[1] ?? Number.NaN)
}

export const spooledOf = ({ entries }: Pick<Ledger, 'entries'>) => entries.filter(({ isSpooled }) => isSpooled)
/** Of checks that the process knew: those of a ping that got a response, and not 200. */
export const rejectedOf = ({ entries }: Pick<Ledger, 'entries'>) =>
  entries.filter(({ status }) => status !== null && status !== 200)

/** One process after the other with the same environment, and the pings that are sent to the one that serves. */
export function openLives(environment: Record<string, string>) {
  let process: ServiceProcess | null = null
  let ping: string | null = null
  const ledger = openLedger(() => ping)
  const kill = async () => {
    ping = null
    await process?.kill()
  }
  return {
    ledger,
    spawn() {
      process = spawnService(environment)
      return process
    },
    /** Resolves with the addresses when it is ready. */
    async ready() {
      const addresses = await process!.ready()
      ping = addresses.ping
      return addresses
    },
    kill,
    [Symbol.asyncDispose]: kill,
  }
}
