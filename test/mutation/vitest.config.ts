import { defineConfig } from 'vitest/config'

/** The tests that mutants run against: of the unit and database lanes, what covers `domain/`, `checks/` and the outbox. */
export default defineConfig({
  test: {
    include: [
      'test/unit/{audit,auth,checks,domain}/**/*.test.ts',
      'test/unit/http/{badges,error-codes}.test.ts',
      'test/db/{checks,deadlines,delivery,jobs,operator,pings}/**/*.test.ts',
    ],
    globalSetup: ['test/support/postgres-setup.ts'],
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
