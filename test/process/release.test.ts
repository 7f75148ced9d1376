/** `npm run release`, as a maintainer calls it, in a copy of this checkout whose slow steps are scripts of the test. */

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CHECKOUT } from '../support/service-process.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { eventually } from '../support/until.ts'

/** In place of `npm run manifests`, which needs Helm: what it makes without Helm. */
const MANIFESTS = `
import { writeFileSync } from 'node:fs'
import { renderManifests } from './tools/generate/manifests.ts'
for (const [path, text] of renderManifests()) writeFileSync(path, text)
`
/** In place of `npm run check`. It sees what the real one would. While it runs, a maintainer works on. */
const CHECK = `
import { appendFileSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
const chart = parse(readFileSync('charts/heartbeat-operator/Chart.yaml', 'utf8'))
for (const file of ['LICENSE', 'idea']) appendFileSync(file, 'work')
if (version === '1.98.0') setTimeout(() => {}, 60_000)
if (version === '1.99.0' || chart.version !== version || chart.appVersion !== version) process.exit(1)
`

let folder: TempFolder
let checkout: string

beforeAll(async () => {
  folder = await makeTempFolder()
  checkout = join(folder.path, 'checkout')
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: CHECKOUT })
  const wanted = /^(?:src|charts|crds|docs|manifests|tools|[^/]+$)/
  for (const file of files
    .toString()
    .split('\0')
    .filter((name) => wanted.test(name) && name !== ''))
    cpSync(join(CHECKOUT, file), join(checkout, file))
  writeFileSync(join(checkout, 'manifests.mjs'), MANIFESTS)
  writeFileSync(join(checkout, 'check.mjs'), CHECK)
  const description = JSON.parse(read('package.json'))
  // The packages are those of this checkout: nothing may install them anew.
  Object.assign(description.scripts, { manifests: 'node manifests.mjs', check: 'node check.mjs', setup: 'true' })
  write('package.json', `${JSON.stringify({ ...description, version: '1.2.3' }, null, 2)}\n`)
  write('CHANGELOG.md', read('CHANGELOG.md').replace('## [Unreleased]\n', '## [Unreleased]\n\n- A thing\n'))
  git('init', '--quiet')
  symlinkSync(join(CHECKOUT, 'node_modules'), join(checkout, 'node_modules'))
  write('.git/info/exclude', 'node_modules\n')
  git('config', 'user.name', 'A maintainer')
  git('config', 'user.email', 'maintainer@example.com')
  git('add', '--all')
  git('commit', '--quiet', '--message', 'All')
})
afterAll(() => folder?.remove())

const read = (name: string) => readFileSync(join(checkout, name), 'utf8')
const write = (name: string, text: string) => writeFileSync(join(checkout, name), text)
const git = (...args: string[]) => execFileSync('git', args, { cwd: checkout, encoding: 'utf8' }).trimEnd()

function run(command: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: checkout, encoding: 'utf8' })
  return { status, stdout, stderr }
}

/** Without npm, which takes half a second. */
const call = (...args: string[]) => run(process.execPath, 'tools/release/run.ts', ...args)

/** All that git knows of the checkout, with what is neither committed nor ignored. */
const describeCheckout = () =>
  git('log', '--format=%H') + git('status', '--porcelain', '-unormal') + git('for-each-ref')

const USAGE = 'usage: npm run release -- X.Y.Z, as in npm run release -- 1.2.0\n'

it('rejects what is no version, and one that is older than that of package.json', () => {
  const before = describeCheckout()
  for (const args of [[], ['1.3'], ['v1.3.0'], ['next'], ['1.3.0', '1.4.0']])
    expect(call(...args), String(args)).toEqual({ status: 1, stdout: '', stderr: USAGE })
  expect(call('1.2.2').stderr).toBe('1.2.2 is not newer than 1.2.3, the version of package.json.\n')
  expect(describeCheckout()).toBe(before)
})

it.each(['LICENSE', 'new-file'])('rejects a checkout with a change: %s', (name) => {
  git('config', 'status.showUntrackedFiles', 'no')
  write(name, 'changed')
  const before = describeCheckout()
  expect(call('1.3.0')).toMatchObject({ status: 1, stderr: expect.stringContaining(name) })
  expect([describeCheckout(), read(name)]).toEqual([before, 'changed'])
  git('config', '--unset', 'status.showUntrackedFiles')
  git('clean', '--quiet', '--force')
  git('checkout', '--quiet', '.')
})

/** What was changed while the check ran is not lost. Takes it away. */
function expectWork() {
  expect([read('LICENSE').endsWith('work'), read('idea')]).toEqual([true, 'work'])
  expect(git('status', '--porcelain')).toBe(' M LICENSE\n?? idea')
  git('clean', '--quiet', '--force')
  git('checkout', '--quiet', '.')
}

it('leaves nothing of its own where `npm run check` fails, and what others changed in the meantime', () => {
  const before = describeCheckout()
  const { status, stderr } = call('1.99.0')
  expect(status).toBe(1)
  expect(stderr).toContain('npm run --silent check failed: status 1.\n')
  const changes = ' M LICENSE\n?? idea\n'
  expect(stderr).toContain(`1.99.0 is not released, and the checkout is as it was, but for these changes:\n${changes}`)
  expectWork()
  expect(describeCheckout()).toBe(before)
})

it('leaves nothing of its own after Ctrl-C', async () => {
  const before = describeCheckout()
  const command = ['tools/release/run.ts', '1.98.0']
  // A group of its own, as that of a command in a terminal.
  const child = spawn(process.execPath, command, { cwd: checkout, stdio: 'ignore', detached: true })
  await eventually('the check runs', () => existsSync(join(checkout, 'idea')))
  process.kill(-child.pid!, 'SIGINT')
  expect(await once(child, 'exit')).toEqual([1, null])
  expectWork()
  expect(describeCheckout()).toBe(before)
})

it('leaves nothing where git refuses the commit', () => {
  const before = describeCheckout()
  const hook = join(checkout, '.git/hooks/commit-msg')
  writeFileSync(hook, '#!/bin/sh\necho no >&2\nexit 1\n', { mode: 0o755 })
  const why = 'git commit failed: no\n'
  const left = '1.3.0 is not released, and the checkout is as it was.\n'
  expect(call('1.3.0')).toMatchObject({ status: 1, stderr: left + why })
  expect(describeCheckout()).toBe(before)
  rmSync(hook)
})

it('makes one commit and the tag, with the version in all files and the changelog dated', () => {
  const before = git('rev-parse', 'HEAD')
  const { status, stdout } = run('npm', 'run', '--silent', 'release', '--', '1.3.0')
  expect([status, stdout]).toEqual([
    0,
    'The commit and the tag v1.3.0 are made. To publish them: git push --atomic origin HEAD v1.3.0\n',
  ])
  expectWork()
  expect(git('rev-parse', 'HEAD^')).toBe(before)
  expect(git('rev-parse', 'v1.3.0^{commit}')).toBe(git('rev-parse', 'HEAD'))
  expect(git('cat-file', '-t', 'v1.3.0')).toBe('tag')
  expect(git('tag', '--list', '--format=%(contents)')).toMatch(/^1\.3\.0\n\n- A thing/)
  expect(git('log', '-1', '--format=%B')).toMatch(/^Release 1\.3\.0\n\nSigned-off-by: A maintainer/)
  expect(git('show', '--format=', '--name-only', 'HEAD').split('\n')).toEqual([
    'CHANGELOG.md',
    'charts/heartbeat-operator/Chart.yaml',
    'docs/get-started/docker.md',
    'docs/get-started/image.md',
    'package-lock.json',
    'package.json',
  ])
  expect(read('CHANGELOG.md')).toMatch(/^## \[Unreleased\]\n\n## \[1\.3\.0\] - \d{4}-\d\d-\d\d\n\n- A thing\n/m)
})

it('rejects a version that has a tag; takes that of package.json where it has none, as that of the first release', () => {
  expect(call('1.3.0')).toMatchObject({ status: 1, stderr: 'The tag v1.3.0 exists.\n' })
  git('tag', '--delete', 'v1.3.0')
  git('checkout', '--quiet', '--detach')
  const { status, stdout } = call('1.3.0')
  expect(status).toBe(0)
  // Git could not push HEAD.
  expect(stdout).toContain(': git push --atomic origin v1.3.0\n')
  expectWork()
  expect(git('show', '--format=', '--name-only', 'HEAD')).toBe('')
  expect(git('rev-parse', 'v1.3.0^{commit}')).toBe(git('rev-parse', 'HEAD'))
})
