/**
 * The process: configuration, database, app, until a signal. Exit status 0 after a signal, 2 when it cannot start. With
 * the argument `release` it removes our finalizers and ends: 0 when none is left, 1 when one may be left. With `import`
 * it imports checks of another monitor and ends: 0, 3 when some were refused, 1 when that monitor cannot be read.
 * `--version` prints the version, and reads no configuration.
 */

import { type App, createApp, DATABASE_RETRY_MS } from './app.ts'
import { logEntry } from './audit/log-entry.ts'
import { type Config, readConfig } from './config/config.ts'
import { describeCluster, describeCredentials, describeService } from './config/introduction.ts'
import { loadOrMakeSecretKey } from './config/secret-key.ts'
import { DATABASE_WAIT_SECONDS } from './config/variables.ts'
import type { AuditEntry } from './domain/audit.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from './embedded-postgres/start.ts'
import { type ImportArguments, readArguments } from './import/arguments.ts'
import { runImport } from './import/run-import.ts'
import { type Connection, findConnection, findHomeKubeconfig, KubeconfigError } from './kubernetes/connection.ts'
import { runRelease } from './roles/release.ts'
import { isLoopbackHost } from './runtime/addresses.ts'
import { systemClock } from './runtime/clock.ts'
import { createLog, type Log } from './runtime/log.ts'
import { StartFault } from './runtime/start-fault.ts'
import { VERSION } from './runtime/version.ts'
import { allocateYoungObjects } from './runtime/young-objects.ts'
import { createDatabase, type Database } from './store/postgres/database.ts'
import { createDatabaseClock } from './store/postgres/database-clock.ts'
import { explainDatabaseError, isDatabaseError, mayPass } from './store/postgres/explain.ts'
import { migrate } from './store/postgres/migrate.ts'
import { type Bootstrapped, bootstrap, findBootstrapped, findPublishedKey } from './tenancy/bootstrap.ts'

const stopping = new AbortController()
// Ctrl-C reaches npm and this process, and npm passes its own on: the second signal changes nothing.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort())
// The reader of our output may go away (`npm start | head -1`). Without these listeners EPIPE would end the process
// without an orderly stop. They must come before the `await` below, which lasts as long as the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

/** A signal ends a start. An import has not done its work then. */
class Stopped extends Error {
  readonly exitStatus = process.argv[2] === 'import' ? 1 : 0
}

const HOW_TO_FIND_ONE = 'set KUBECONFIG to a kubeconfig, or run in a pod with a ServiceAccount'
const USAGE = `usage: node src/main.ts           serves the role that ROLE names, until a signal
       node src/main.ts release   removes the finalizer from the installation's HeartbeatChecks, before it is uninstalled
       node src/main.ts import    imports the checks of healthchecks or Uptime Kuma: docs/use/moving-in.md
       node src/main.ts --version prints the version`

allocateYoungObjects()
try {
  const [command, ...more] = process.argv.slice(2)
  if (command === '--version' && more.length === 0) say(VERSION)
  else await obey(command, more)
} catch (error) {
  if (!(error instanceof StartFault || error instanceof Stopped)) throw error
  if (error instanceof StartFault) process.stderr.write(`${error.message}\n`)
  process.exitCode ??= error.exitStatus
}

async function obey(command: string | undefined, more: string[]): Promise<void> {
  const toImport = command === 'import' ? readArguments(more, { env: process.env }) : null
  if (toImport === null && (more.length > 0 || (command !== undefined && command !== 'release')))
    throw new StartFault(`there is no command "${[command, ...more].join(' ')}"\n${USAGE}`)
  const config = readConfig(process.env, process.stderr.isTTY === true)
  await (toImport !== null ? importChecks(config, toImport) : command === 'release' ? release(config) : run(config))
}

async function run(config: Config): Promise<void> {
  const log = createLog({ level: config.logLevel, format: config.logFormat })
  const { connection, fault } = await findCluster(config)
  await using resources = new AsyncDisposableStack()
  let databaseUrl = config.secrets.databaseUrl
  if (databaseUrl === undefined) {
    const embedded = resources.use(await startEmbedded(config.dataDir))
    embedded.exited.then((error) => error !== null && fail(error))
    databaseUrl = embedded.url
  }
  const isController = config.role === 'controller'
  const secretKey = isController ? null : (config.secrets.secretKey ?? (await loadOrMakeSecretKey(config.dataDir)))
  const prepared = await prepareDatabase(config, databaseUrl, log)
  say(`\n${describeCredentials(prepared.projectId, prepared.made, config.secrets)}`)

  const app: App = createApp({ config, databaseUrl, secretKey, connection, log })
  resources.defer(() => app.stop())
  const { listening, ...addresses } = await orExplain(() => app.start(stopping.signal), databaseUrl)
  for (const warning of config.warnings) log.warn(warning)
  const shownKey = config.secrets.bootstrapApiKey === undefined ? (prepared.made?.apiKey ?? null) : null
  if (config.kubernetes !== 'off' && config.role !== 'api')
    say(describeCluster(config, connection, fault ?? app.whyNotReconciling()))
  say(describeService(addresses, config, prepared.projectId, shownKey))
  // The listening addresses, for scripts: with port 0 they are known only from this line.
  const served = listening.ping === null ? '' : ` ping=${listening.ping} api=${listening.api}`
  say(`ready${served} ops=${listening.ops}`)
  if (!stopping.signal.aborted) await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve))
  say('stopping ...')
}

async function release({ kubernetes, watchNamespaces: namespaces, takeOver }: Config): Promise<void> {
  const connection = await findConnection(process.env, { clock: systemClock, looksAtHome: kubernetes === 'required' })
  if (connection === null) throw new StartFault(`no cluster was found to release from: ${await howToFindOne()}`)
  await runRelease(connection, { namespaces, takeOver, say, signal: stopping.signal })
}

async function importChecks(config: Config, given: ImportArguments): Promise<void> {
  const log = createLog({ level: 'warn', format: config.logFormat })
  await using resources = new AsyncDisposableStack()
  let url = config.secrets.databaseUrl
  // Also while the service runs.
  url ??= resources.use(await startEmbedded(config.dataDir, true)).url
  const prepared = await prepareDatabase(config, url, log)
  if (prepared.made !== null) say(`\n${describeCredentials(prepared.projectId, prepared.made, config.secrets)}`)
  const { signal } = stopping
  const database = createDatabase({ url, name: 'import', connections: 2, patient: true, signal })
  resources.defer(() => database.close())
  const databaseClock = createDatabaseClock(database, systemClock)
  const draw = process.stderr.isTTY === true ? (text: string) => void process.stderr.write(text) : null
  const warn = (line: string) => void process.stderr.write(`${line}\n`)
  const context = { database, clock: databaseClock }
  process.exitCode = await orExplain(async () => {
    await databaseClock.measure()
    return runImport(given, { context, clock: systemClock, say, warn, draw, signal })
  }, url)
}

/** What to do where no cluster was found; names a kubeconfig that was not used. */
async function howToFindOne(): Promise<string> {
  const unused = await findHomeKubeconfig(process.env)
  return unused === null ? HOW_TO_FIND_ONE : `${HOW_TO_FIND_ONE} (${unused} is not used without KUBECONFIG)`
}

/** `connection` is null when no cluster is wanted or none was found; `fault` says why none is used. */
async function findCluster({
  kubernetes,
  role,
}: Config): Promise<{ connection: Connection | null; fault: string | null }> {
  if (kubernetes === 'off' || role === 'api') return { connection: null, fault: null }
  const isNeeded = kubernetes === 'required' || role === 'controller'
  try {
    const connection = await findConnection(process.env, { clock: systemClock, looksAtHome: kubernetes === 'required' })
    if (connection === null && isNeeded) {
      const who = kubernetes === 'required' ? 'KUBERNETES is required' : 'ROLE controller needs one'
      throw new StartFault(`no cluster was found, and ${who}: ${await howToFindOne()}`)
    }
    const unused = connection === null ? await findHomeKubeconfig(process.env) : null
    const fault = unused === null ? null : `${unused} is not used (set KUBECONFIG=${unused} to reconcile its cluster)`
    return { connection, fault }
  } catch (error) {
    // A pod whose ServiceAccount cannot be read still serves; a file that KUBECONFIG names stops the start.
    const isOfPod = error instanceof KubeconfigError && !isNeeded && !process.env.KUBECONFIG
    if (!isOfPod) throw error
    return { connection: null, fault: error.message }
  }
}

function startEmbedded(dataDir: string, shares = false): Promise<EmbeddedPostgres> {
  return orExplain(() => startEmbeddedPostgres({ dataDir, shares, note: say, signal: stopping.signal }))
}

/** Explains errors of the database at `url`. Throws Stopped when a signal came meanwhile. */
async function orExplain<T>(work: () => Promise<T>, url = ''): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (stopping.signal.aborted) throw new Stopped()
    throw isDatabaseError(error) ? new StartFault(explainDatabaseError(error, url)) : error
  }
}

/** The embedded database has ended, and nothing can be served without it. */
function fail(error: Error): void {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
  stopping.abort()
}

/**
 * Migrates and bootstraps. Waits for a server that is still starting; a controller, which has no values to bootstrap
 * with, also for a process that has done it. Throws Stopped when a signal came meanwhile.
 */
async function prepareDatabase(config: Config, databaseUrl: string, log: Log): Promise<Bootstrapped> {
  const { signal } = stopping
  const database = createDatabase({ url: databaseUrl, name: 'start', connections: 2, patient: true, signal })
  const giveUpAt = systemClock.now() + config.databaseWaitSeconds * 1_000
  const isNameAwaited = config.databaseWaitSeconds > DATABASE_WAIT_SECONDS
  const { host } = new URL(databaseUrl)
  let said = ''
  try {
    while (!signal.aborted) {
      let waitingFor = `the database at ${host}`
      try {
        await migrate(database)
        const prepared =
          config.role === 'controller' ? await findBootstrapped(database) : await bootstrapWith(config, database, log)
        if (prepared !== null) return prepared
        waitingFor = 'a process with ROLE api or all, which sets the database up'
        if (systemClock.now() >= giveUpAt)
          throw new StartFault(`the database at ${host} is empty: start a process with ROLE api or all on it first`)
      } catch (error) {
        if (signal.aborted) break
        if (error instanceof StartFault) throw error
        if (!mayPass(error, isNameAwaited) || systemClock.now() >= giveUpAt)
          throw new StartFault(explainDatabaseError(error, databaseUrl))
      }
      if (said !== waitingFor) say(`waiting for ${waitingFor} ...`)
      said = waitingFor
      await systemClock.sleep(DATABASE_RETRY_MS, signal)
    }
    throw new Stopped()
  } finally {
    await database.close()
  }
}

async function bootstrapWith(config: Config, database: Database, log: Log): Promise<Bootstrapped> {
  const { bootstrapEmail: email, bootstrapProjectId: projectId } = config
  const { bootstrapPassword: password, bootstrapApiKey: apiKey } = config.secrets
  const clock = createDatabaseClock(database, systemClock)
  await clock.measure()
  const onAudit = (entry: AuditEntry) => logEntry(log, entry)
  const prepared = await bootstrap({ database, clock, onAudit }, { email, password, apiKey, projectId })
  const published = isLoopbackHost(config.bindAddress) ? null : await findPublishedKey(database)
  if (published === null) return prepared
  const found = `the database has an API key that is an example of the documents, "${published}", and BIND_ADDRESS is ${config.bindAddress}`
  throw new StartFault(`${found}: start with a loopback BIND_ADDRESS and revoke the key first`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
