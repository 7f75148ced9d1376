import { type Addresses, type Exit, type ServiceProcess, spawnService } from '../support/service-process.ts'

/** A replica that is started again whenever it was killed. */
export interface Replica extends AsyncDisposable {
  /** Null while it does not serve. */
  ping(): string | null
  api(): string | null
  ops(): string | null
  started(): Promise<void>
  kill(): Promise<void>
  stop(): Promise<Exit>
  /** Again after `stop`. */
  start(): void
}

export function createReplica(environment: () => Record<string, string>): Replica {
  let process: ServiceProcess
  let addresses: Addresses | null = null
  let starting: Promise<void>
  const start = () => {
    const started = spawnService(environment())
    process = started
    // Killed before it served: then there is nothing to learn.
    starting = started.ready().then(
      (found) => {
        if (process === started) addresses = found
      },
      () => {},
    )
  }
  start()
  return {
    ping: () => addresses?.ping ?? null,
    api: () => addresses?.api ?? null,
    ops: () => addresses?.ops ?? null,
    started: () => starting,
    async kill() {
      addresses = null
      await process.kill()
      start()
    },
    start,
    async stop() {
      await starting
      addresses = null
      return process.stop()
    },
    async [Symbol.asyncDispose]() {
      await process.kill()
    },
  }
}
