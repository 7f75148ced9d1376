/**
 * `npm run demo`: the dashboard with a month of data, on the usual ports of this machine. The database is in a
 * temporary folder, never in `.data` and never at DATABASE_URL, and goes with the process. What reports in it are no
 * jobs: the data ages.
 */

import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { createApp } from '../../src/app.ts'
import { readConfig } from '../../src/config/config.ts'
import { describeCredentials, describeService } from '../../src/config/introduction.ts'
import { startEmbeddedPostgres } from '../../src/embedded-postgres/start.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createLog } from '../../src/runtime/log.ts'
import { StartFault } from '../../src/runtime/start-fault.ts'
import { createDatabase } from '../../src/store/postgres/database.ts'
import { migrate } from '../../src/store/postgres/migrate.ts'
import { bootstrap } from '../../src/tenancy/bootstrap.ts'
import { makeTempFolder } from '../../test/support/temp-folder.ts'
import { fillDemo } from './demo.ts'

const DAYS = 30
/** All else is as by default: no setting of a service of this person counts. */
const TAKEN = /^((PING|API|OPS)_PORT|(PING|BASE)_URL|BOOTSTRAP_\w+|LOG_\w+|HISTORY_\w+)$/

const say = (line: string) => void process.stdout.write(`${line}\n`)
const stopping = new AbortController()
let isFilling = true
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => (isFilling ? process.exit(0) : stopping.abort()))

try {
  await run()
} catch (error) {
  if (!(error instanceof StartFault)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = error.exitStatus
}

async function run(): Promise<void> {
  const given = Object.entries(process.env).filter(([name]) => TAKEN.test(name))
  const config = readConfig(
    {
      LOG_LEVEL: 'error',
      ...Object.fromEntries(given),
      KUBERNETES: 'off',
      SPOOL_MAX_BYTES: '0',
      ALLOWED_TARGETS: '127.0.0.0/8',
    },
    process.stderr.isTTY === true,
  )
  // It goes, and the database with it, also when this process is killed.
  await using temp = await makeTempFolder()
  const dataDir = join(temp.path, 'data')
  await using postgres = await startEmbeddedPostgres({ dataDir, note: () => {}, settings: { fsync: 'off' } })
  const secretKey = randomBytes(32)
  await using receiver = await startReceiver()

  say(`filling a database with ${DAYS} days of twenty jobs ...`)
  const database = createDatabase({ url: postgres.url, name: 'demo', connections: 4 })
  const { bootstrapEmail: email, bootstrapProjectId: project } = config
  const { bootstrapPassword: password, bootstrapApiKey: apiKey } = config.secrets
  await migrate(database)
  const context = { database, clock: systemClock }
  const { projectId, made } = await bootstrap(context, { email, password, apiKey, projectId: project })
  await fillDemo({ database, secretKey, receiverUrl: receiver.url, days: DAYS })
  await database.close()
  isFilling = false

  const log = createLog({ level: config.logLevel, format: config.logFormat })
  const app = createApp({ config, databaseUrl: postgres.url, secretKey, log })
  await using _ = { [Symbol.asyncDispose]: () => app.stop() }
  const { listening, ...addresses } = await app.start(stopping.signal)
  say(`\n${describeCredentials(projectId, made, config.secrets)}`)
  say(describeService(addresses, config, projectId, null))
  say('Ctrl-C ends the demo and removes its data.')
  say(`ready ping=${listening.ping} api=${listening.api} ops=${listening.ops}`)
  if (!stopping.signal.aborted) await new Promise((resolve) => stopping.signal.addEventListener('abort', resolve))
  say('stopping ...')
}

/** Takes what the channels of the demo send, but for the one that is broken. */
async function startReceiver(): Promise<AsyncDisposable & { readonly url: string }> {
  const server = createServer((request, response) => {
    request.resume()
    response.writeHead(request.url === '/broken' ? 410 : 204).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : address
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
    },
  }
}
