import { defineConfig } from 'vitest/config'

/** A lane for each kind of dependency: `unit` needs nothing; the others get a real PostgreSQL from test/support/postgres-setup.ts. */
const lane = (name: string, extra: object = {}) => ({
  test: { name, include: [`test/${name}/**/*.test.ts`], ...extra },
})
const withPostgres = { globalSetup: ['test/support/postgres-setup.ts'], testTimeout: 30_000, hookTimeout: 60_000 }

export default defineConfig({
  test: {
    projects: [
      { test: { name: 'unit', include: ['test/unit/**/*.test.ts', 'test/architecture.test.ts'] } },
      lane('db', withPostgres),
      lane('http', withPostgres),
      lane('process', { ...withPostgres, testTimeout: 120_000 }),
    ],
  },
})
