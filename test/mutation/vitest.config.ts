import { defineConfig } from 'vitest/config'
import { AREAS, type AreaName } from './areas.ts'

/** Stryker runs the tests of one area against its mutants. */
export default defineConfig({
  test: {
    include: [...AREAS[process.env.MUTATION_AREA as AreaName].tests],
    globalSetup: ['test/support/postgres-setup.ts'],
    isolate: false,
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
