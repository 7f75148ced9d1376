/**
 * What `npm run mutate` changes, and the tests that must detect it. Other lanes would detect some more of it, as that of
 * the operator; each mutant would then take minutes.
 */

export interface Area {
  readonly mutate: readonly string[]
  readonly tests: readonly string[]
}

export const AREAS = {
  domain: {
    mutate: ['src/domain/**/*.ts'],
    tests: ['test/unit/{audit,auth,checks,domain}/**/*.test.ts', 'test/unit/http/{badges,error-codes}.test.ts'],
  },
  outbox: {
    mutate: ['src/delivery/outbox.ts', 'src/store/outbox/deliveries.ts'],
    tests: ['test/db/delivery/**/*.test.ts'],
  },
  jobs: {
    mutate: ['src/checks/jobs/**/*.ts'],
    tests: ['test/unit/checks/jobs/**/*.test.ts', 'test/db/jobs/**/*.test.ts'],
  },
  declare: {
    mutate: ['src/checks/declare/**/*.ts'],
    tests: ['test/unit/checks/declare/**/*.test.ts', 'test/db/operator/**/*.test.ts'],
  },
  pings: {
    mutate: ['src/checks/ping/**/*.ts'],
    tests: ['test/unit/checks/ping/**/*.test.ts', 'test/db/pings/**/*.test.ts'],
  },
  checks: {
    mutate: ['src/checks/*.ts', 'src/checks/deadlines/**/*.ts'],
    tests: ['test/unit/checks/*.test.ts', 'test/db/{checks,deadlines}/**/*.test.ts'],
  },
} as const satisfies Record<string, Area>

export type AreaName = keyof typeof AREAS
