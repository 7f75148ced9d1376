/**
 * `npm run release -- X.Y.Z`: writes the version into package.json and what is made of it, dates the changelog, makes
 * one commit, runs `npm run check`, and makes the tag vX.Y.Z. Pushes nothing. Where anything fails, the checkout is as
 * it was: it is clean before.
 */

import { spawnSync } from 'node:child_process'
import { readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { moveUnreleased, readSection } from './changelog.ts'
import { compareVersions, isVersion } from './version.ts'

const USAGE = 'usage: npm run release -- X.Y.Z, as in npm run release -- 1.2.0'
const root = fileURLToPath(new URL('../../', import.meta.url))
const LOCK = `${root}package-lock.json`

/** What keeps a version from being released. */
class Refusal extends Error {
  override readonly name = 'Refusal'
}

// Ctrl-C reaches the commands that run, and they fail; this process lives on to clean up.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
try {
  const version = readVersion(process.argv.slice(2))
  release(version)
  const branch = git('branch', '--show-current') === '' ? '' : 'HEAD '
  say(`The commit and the tag v${version} are made. To publish them: git push --atomic origin ${branch}v${version}`)
} catch (error) {
  if (!(error instanceof Refusal)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function readVersion(args: readonly string[]): string {
  const [version = '', ...more] = args
  if (!isVersion(version) || more.length > 0) throw new Refusal(USAGE)
  const changes = listChanges()
  if (changes !== '') throw new Refusal(`The checkout must have no changes, and has these:\n${changes}`)
  const isTagged = (tag: string) => git('tag', '--list', tag) !== ''
  if (isTagged(`v${version}`)) throw new Refusal(`The tag v${version} exists.`)
  const { version: current } = readJson('package.json')
  const order = compareVersions(version, current)
  // The version of package.json is the first one until its tag exists.
  if (order < 0 || (order === 0 && isTagged(`v${current}`)))
    throw new Refusal(`${version} is not newer than ${current}, the version of package.json.`)
  return version
}

function release(version: string): void {
  const head = git('rev-parse', 'HEAD')
  const installedAt = statSync(LOCK).mtime
  let isCommitted = false
  let isDone = false
  try {
    writeVersion(version)
    const notes = readSection(read('CHANGELOG.md'), version)
    run('npm', 'run', '--silent', 'manifests')
    git('add', '--all')
    git('commit', '--quiet', '--allow-empty', '--signoff', '--message', `Release ${version}`)
    isCommitted = true
    // No dependency changes: npm has nothing to install. Not before the commit: git would see no change of the file.
    utimesSync(LOCK, installedAt, installedAt)
    // It takes a while. What the maintainer changes in the meantime is not of the release, and stays.
    run('npm', 'run', '--silent', 'check')
    git('tag', '--annotate', '--cleanup=verbatim', '--message', `${version}\n\n${notes}`, `v${version}`)
    isDone = true
  } finally {
    if (!isDone) {
      // A status tells git that a file with another time has not changed; --keep would refuse.
      listChanges()
      git('reset', '--quiet', isCommitted ? '--keep' : '--hard', head)
      if (!isCommitted) git('clean', '--quiet', '--force', '-d')
      utimesSync(LOCK, installedAt, installedAt)
      const others = listChanges()
      const but = others === '' ? '' : `, but for these changes:\n${others}`
      process.stderr.write(`${version} is not released, and the checkout is as it was${but || '.'}\n`)
    }
  }
}

/**
 * Untracked files count, whatever the settings of git say: they would become part of the release, or would be removed.
 */
function listChanges(): string {
  return git('status', '--porcelain', '--untracked-files=normal')
}

function writeVersion(version: string): void {
  for (const name of ['package.json', 'package-lock.json']) {
    const content = readJson(name)
    content.version = version
    if (content.packages !== undefined) content.packages[''].version = version
    write(name, `${JSON.stringify(content, null, 2)}\n`)
  }
  const changelog = moveUnreleased(read('CHANGELOG.md'), { version, date: new Date().toISOString().slice(0, 10) })
  if (readSection(changelog, version) === '') say(`CHANGELOG.md says nothing of ${version}.`)
  write('CHANGELOG.md', changelog)
}

function read(name: string): string {
  return readFileSync(root + name, 'utf8')
}

function readJson(name: string) {
  return JSON.parse(read(name))
}

function write(name: string, text: string): void {
  writeFileSync(root + name, text)
}

/** Its output, without the end of the last line. */
function git(...args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (status === 0) return stdout.trimEnd()
  throw new Refusal(`git ${args[0]} failed: ${error?.message ?? stderr.trim()}`)
}

/** The user sees what it says. */
function run(command: string, ...args: string[]): void {
  const { status, signal, error } = spawnSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] })
  if (status !== 0)
    throw new Refusal(`${[command, ...args].join(' ')} failed: ${error?.message ?? signal ?? `status ${status}`}.`)
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
