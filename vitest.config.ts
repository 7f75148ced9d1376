import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { KILLS } from './test/crash/kills.ts'

/**
 * No test needs so long: the runner's own limits, five seconds and one for a poll, have run out on a machine that was
 * busy with other work.
 */
const patient = { testTimeout: 120_000, hookTimeout: 120_000, expect: { poll: { timeout: 45_000 } } }
/**
 * A lane for each kind of need. The lanes run one after the other, so that a load test never slows another lane's clock
 * down; but db runs beside http, and operator, which waits for back-offs, beside process, which waits for services.
 * unit needs nothing. The other lanes get a real PostgreSQL from test/support/postgres-setup.ts; operator has a fake
 * API server besides, cluster and chart get a real Kubernetes control plane, from test/support/cluster-setup.ts. e2e
 * has a whole node. clients installs tools of npm, PyPI, Go and, where cargo is, crates.io; browser looks at the
 * dashboard in a Chromium, once with a control plane of its own. process is short; what kills, holds up and restarts
 * for minutes is in crash.
 */
const lane = (name: string, order: number, extra: object = {}) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], sequence: { groupOrder: order }, ...patient, ...extra },
})
/**
 * The files of a worker share its modules: loading them anew for each file takes longer than most files do. More
 * workers than two cores have, because tests wait: for PostgreSQL a third of their time, those of the operator for
 * back-offs more than half of it.
 */
const workers = (count: number) => ({ isolate: false, maxWorkers: count })
const withPostgres = { globalSetup: ['test/support/postgres-setup.ts'] }
/** One browser and one service at a time: pages are looked at while the processor is quiet. */
const oneByOne = { isolate: false, fileParallelism: false }
/** `npm run pictures`: files that take pictures for the documents, and are no tests. */
const pictures = process.env.PICTURES === 'write' ? { include: ['test/browser/**/*.{test,pictures}.ts'] } : {}
const withCluster = { globalSetup: ['test/support/postgres-setup.ts', 'test/support/cluster-setup.ts'] }

/**
 * Node.js loads the files itself, as it does for the service, and keeps what it has compiled: an eighth less processor
 * time than Vite's module runner takes.
 */
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/compiled')

export default defineConfig({
  test: {
    experimental: { viteModuleRunner: false, nodeLoader: false },
    projects: [
      lane('unit', 0, { ...workers(2), include: ['test/unit/**/*.test.ts', 'test/architecture.test.ts'] }),
      lane('db', 1, { ...workers(3), ...withPostgres }),
      lane('http', 1, { ...workers(3), ...withPostgres }),
      lane('operator', 2, { ...workers(5), ...withPostgres }),
      lane('process', 2, { ...withPostgres, maxWorkers: 5 }),
      lane('clients', 5, { ...withPostgres, hookTimeout: 600_000, fileParallelism: false }),
      lane('prometheus', 6, { ...workers(2), ...withPostgres }),
      lane('cluster', 7, { ...workers(2), ...withCluster }),
      lane('chart', 8, { ...workers(2), ...withCluster }),
      lane('browser', 9, { ...pictures, ...withPostgres, ...oneByOne }),
      lane('crash', 10, { ...withPostgres, testTimeout: 300_000 + KILLS * 10_000, maxWorkers: 2 }),
      lane('e2e', 11, { testTimeout: 900_000, hookTimeout: 900_000, maxWorkers: 2 }),
    ],
  },
})
