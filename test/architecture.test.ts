/** Who may import whom (src/README.md has the layers). A rule that is broken here is a decision to take first. */

import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CHANNEL_KINDS } from '../src/domain/channel.ts'

const SRC = new URL('../src', import.meta.url).pathname

/** A folder (or a file at the root of src) may import these folders besides itself, and these outside packages. */
const TABLE: Record<string, { inside: string[]; outside: string[] }> = {
  domain: { inside: [], outside: ['any-ascii'] },
  runtime: { inside: [], outside: ['pino', 'prom-client', 'ipaddr.js'] },
  store: { inside: ['domain', 'runtime'], outside: ['pg'] },
  'embedded-postgres': { inside: ['runtime'], outside: ['pg'] },
  audit: { inside: ['domain', 'runtime', 'store'], outside: [] },
  checks: { inside: ['domain', 'runtime', 'store', 'audit', 'spool/spool.ts', 'spool/errors.ts'], outside: [] },
  auth: { inside: ['domain', 'runtime', 'store', 'audit'], outside: ['jose', 'openid-client'] },
  tenancy: { inside: ['domain', 'runtime', 'store', 'audit', 'auth'], outside: [] },
  channels: { inside: ['domain', 'runtime', 'store', 'audit', 'channels/kinds'], outside: [] },
  silences: { inside: ['domain', 'runtime', 'store', 'audit', 'checks/read-spec.ts'], outside: [] },
  service: { inside: ['domain', 'runtime', 'store'], outside: [] },
  spool: { inside: ['runtime'], outside: [] },
  'channels/kinds': {
    inside: [
      'domain',
      'runtime',
      'store',
      'channels/seal.ts',
      'channels/open-channel.ts',
      'delivery/http.ts',
      'delivery/http-outcome.ts',
      'delivery/failures.ts',
      'delivery/outcome.ts',
    ],
    outside: ['zod', 'nodemailer', 'hono'],
  },
  delivery: {
    inside: ['domain', 'runtime', 'store', 'channels/seal.ts', 'channels/open-channel.ts'],
    outside: ['ipaddr.js'],
  },
  kubernetes: { inside: ['runtime'], outside: ['@kubernetes/client-node', 'undici', 'prom-client'] },
  operator: {
    inside: ['domain', 'runtime', 'checks', 'tenancy', 'channels', 'silences', 'kubernetes'],
    outside: ['zod'],
  },
  http: {
    inside: [
      'domain',
      'runtime',
      'audit',
      'checks',
      'auth',
      'tenancy',
      'channels',
      'silences',
      'service',
      'http/healthchecks/app.ts',
    ],
    outside: [
      'koa',
      '@koa/router',
      'accepts',
      'zod',
      'hono',
      '@primer/octicons',
      'cronstrue',
      'd3-scale',
      'badge-maker',
    ],
  },
  // An API of its own beside ours: only what both need is shared.
  'http/healthchecks': {
    inside: [
      'domain',
      'checks',
      'auth',
      'tenancy',
      'channels',
      'service',
      'http/badges/path.ts',
      'http/api/present.ts',
      'http/api/lists.ts',
      'http/write.ts',
      'http/middleware',
      'http/body.ts',
      'http/client-address.ts',
      'http/parameters.ts',
      'http/limits.ts',
    ],
    outside: ['koa'],
  },
  import: { inside: ['domain', 'runtime', 'store', 'checks', 'silences'], outside: ['zod'] },
  roles: {
    inside: [
      'domain',
      'runtime',
      'store',
      'audit',
      'checks',
      'auth',
      'tenancy',
      'silences',
      'http',
      'kubernetes',
      'operator',
      'channels',
      'delivery',
      'spool',
      'config/config.ts',
    ],
    outside: [],
  },
  config: { inside: ['domain', 'runtime'], outside: ['zod'] },
  'config/introduction.ts': {
    inside: ['app.ts', 'config', 'kubernetes/connection.ts', 'tenancy/bootstrap.ts'],
    outside: [],
  },
  'app.ts': {
    inside: ['domain', 'runtime', 'store', 'service', 'http', 'roles', 'config/config.ts', 'kubernetes/connection.ts'],
    outside: [],
  },
  'main.ts': {
    inside: [
      'app.ts',
      'config',
      'domain',
      'runtime',
      'store',
      'embedded-postgres',
      'audit',
      'tenancy',
      'import',
      'kubernetes/connection.ts',
      'roles/release.ts',
    ],
    outside: [],
  },
}

/** Outside packages that have one home. */
const HOMES: Record<string, RegExp> = {
  pg: /^(store\/postgres\/|embedded-postgres\/session\.ts)/,
  pino: /^runtime\/log\.ts$/,
  'prom-client': /^(runtime|kubernetes)\/metrics\.ts$/,
  zod: /^(config\/|channels\/kinds\/|http\/api\/|http\/middleware\/|import\/healthchecks\/|operator\/schema\/)/,
  'openid-client': /^auth\/identity-provider\.ts$/,
  undici: /^kubernetes\/transport\.ts$/,
  nodemailer: /^channels\/kinds\/email\/(send|mail)\.ts$/,
  'any-ascii': /^domain\/slug\.ts$/,
  'ipaddr.js': /^(runtime\/addresses|delivery\/targets)\.ts$/,
  hono: /^(http\/dashboard\/html|channels\/kinds\/email\/(digest-)?mail)\.ts$/,
  '@primer/octicons': /^http\/dashboard\/icons\.ts$/,
  'badge-maker': /^http\/badges\/render\.ts$/,
  cronstrue: /^http\/dashboard\/words\/schedule-words\.ts$/,
  'd3-scale': /^http\/dashboard\/plots\//,
  '@kubernetes/client-node': /^kubernetes\/(kubeconfig|objects\.ts$)/,
}

interface Source {
  readonly file: string
  readonly text: string
  readonly code: string
  readonly imports: readonly string[]
}

const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file): Source => {
    const text = readFileSync(join(SRC, file), 'utf8')
    const imports = [...text.matchAll(/^(?:import|export)\s+[^'";]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm)]
    const code = text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '')
    return {
      file,
      text,
      code,
      imports: imports.map((match) => (match[1] ?? match[2])!),
    }
  })

/** The longest entry of the table that contains the file. */
const placeOf = (file: string) =>
  Object.keys(TABLE).findLast((place) => file === place || file.startsWith(`${place}/`)) ?? file.split('/')[0]!
const resolveInside = (file: string, from: string) => relative(SRC, join(SRC, dirname(file), from))

describe('the import table', () => {
  it('reads the sources', () => {
    expect(sources.length).toBeGreaterThan(30)
    expect(sources.reduce((sum, source) => sum + source.imports.length, 0)).toBeGreaterThan(100)
    expect(sources.map(({ file }) => placeOf(file)).filter((place) => !(place in TABLE))).toEqual([])
  })

  it.each(sources)('holds for $file', ({ file, imports }) => {
    const { inside, outside } = TABLE[placeOf(file)]!
    for (const from of imports) {
      if (from.startsWith('node:')) continue
      if (!from.startsWith('.')) {
        const name = from.startsWith('@') ? from.split('/').slice(0, 2).join('/') : from.split('/')[0]!
        expect(outside, `${file} imports the package ${name}, which belongs elsewhere`).toContain(name)
        expect(file, `${name} is imported in one place only`).toMatch(HOMES[name] ?? /^/)
        continue
      }
      const target = resolveInside(file, from)
      const isAllowed =
        placeOf(target) === placeOf(file) || inside.some((place) => target === place || target.startsWith(`${place}/`))
      expect(isAllowed, `${file} imports ${target}; TABLE says who may`).toBe(true)
    }
  })

  it('lets the config of a channel kind import nothing that sends', () => {
    const configs = sources.filter(({ file }) => /^channels\/kinds\/[^/]+\/config\.ts$/.test(file))
    expect(configs).toHaveLength(CHANNEL_KINDS.length)
    const targets = configs.flatMap(({ file, imports }) => imports.map((from) => resolveInside(file, from)))
    expect(targets.filter((target) => /^delivery\/|\/send\.ts$/.test(target))).toEqual([])
  })

  it('has no cycle, not even of types', () => {
    const graph = new Map(
      sources.map(({ file, imports }) => [
        file,
        imports.filter((from) => from.startsWith('.')).map((from) => resolveInside(file, from)),
      ]),
    )
    const done = new Set<string>()
    const visit = (file: string, path: string[]): void => {
      expect(path, `a cycle: ${[...path, file].join(' -> ')}`).not.toContain(file)
      if (done.has(file)) return
      for (const next of graph.get(file) ?? []) visit(next, [...path, file])
      done.add(file)
    }
    for (const file of graph.keys()) visit(file, [])
  })
})

describe('the rules of the house', () => {
  const breaking = (pattern: RegExp, isExempt: (file: string) => boolean) =>
    sources.filter(({ file, code }) => !isExempt(file) && pattern.test(code)).map(({ file }) => file)

  it('the domain reads no clock, no randomness and no environment', () => {
    expect(
      breaking(
        /Date\.now|new Date\(\)|Math\.random|process\.|performance\.|randomUUID|setTimeout|setInterval/,
        (file) => !file.startsWith('domain/'),
      ),
    ).toEqual([])
  })

  it('the environment is read by main alone, and understood by config', () => {
    expect(breaking(/process\.env/, (file) => file === 'main.ts')).toEqual([])
  })

  it('nothing uses fetch, which takes an interim response for a fault', () => {
    expect(breaking(/\bfetch\(/, () => false)).toEqual([])
  })

  it('timers live in runtime', () => {
    expect(
      breaking(/\b(setTimeout|setInterval|setImmediate)\(|'node:timers(\/promises)?'/, (file) =>
        file.startsWith('runtime/'),
      ),
    ).toEqual([])
  })

  it('nobody exits the process', () => {
    expect(breaking(/process\.exit\(/, () => false)).toEqual([])
  })

  it('every SQL statement is in store', () => {
    expect(
      breaking(/[`'"]\s*(select|insert into|update|delete from)\s[\s\S]*\b(from|set|values)\b/i, (file) =>
        /^(store\/|embedded-postgres\/session\.ts|import\/uptime-kuma\/(read|windows)\.ts)/.test(file),
      ),
    ).toEqual([])
  })

  it('rows that are locked up to a limit are read once', () => {
    // PostgreSQL may read the rows of `in (...)` again for each row outside, and so lock and change more than the limit.
    const again = /\bin \(\s*select(?:(?!\bselect\b)[^`])*\blimit\b[^)`]*\bfor (?:no key )?update/
    expect(sources.filter(({ text }) => again.test(text)).map(({ file }) => file)).toEqual([])
  })

  it('binary arrays are for the hot path', () => {
    const importers = sources.filter(({ imports }) => imports.some((from) => from.endsWith('/binary-arrays.ts')))
    expect(importers.map(({ file }) => file).sort()).toEqual([
      'store/checks/column-lists.ts',
      'store/checks/states.ts',
      'store/history/new-flips.ts',
      'store/outbox/alerts.ts',
      'store/outbox/deliveries.ts',
      'store/outbox/digests.ts',
      'store/outbox/events.ts',
    ])
  })

  it('no file has more than 400 lines', () => {
    expect(sources.filter(({ text }) => text.split('\n').length > 400).map(({ file }) => file)).toEqual([])
  })

  it('every suppression of the linter has a reason', () => {
    expect(
      sources
        .filter(
          ({ text }) => /biome-ignore [^:]+:\s*$/m.test(text) || /@ts-(ignore|nocheck|expect-error)\s*$/m.test(text),
        )
        .map(({ file }) => file),
    ).toEqual([])
  })
})
