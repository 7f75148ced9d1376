/**
 * docs/get-started/script.md with the programs that start jobs: Debian's cron, as root and in a minute, and systemd's
 * own check.
 */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { fetchDebianPackages, unpackedEnvironment } from '../../tools/programs/debian-packages.ts'
import { listBlocksOf } from '../support/documents.ts'
import { makeTempFolder, type TempFolder } from '../support/temp-folder.ts'
import { startTestApp, type TestApp } from './service.ts'
import { call } from './tools.ts'

const blocks = listBlocksOf('test/clients/timers.test.ts')
const crontabs = blocks.filter(({ language }) => language === 'crontab').map(({ text }) => text)
const units = blocks.filter(({ language }) => language === 'ini').map(({ text }) => text)
const JOB = '/usr/local/bin/backup.sh'
/** Cron runs jobs as each minute begins. */
const SOON_MS = 75_000
/** Its own view of the folders that cron reads and writes; `$1`: the folder, `$2`: cron. */
const CRON = `for place in /var/spool /run /etc/pam.d /etc/cron.d; do mount --bind "$1$place" $place; done; exec "$2" -f`

let app: TestApp
let temp: TempFolder
beforeAll(async () => {
  ;[app, temp] = await Promise.all([startTestApp(), makeTempFolder()])
})
afterAll(async () => {
  await app?.close()
  await temp?.remove()
})

async function writeJob(name: string, script: string): Promise<string> {
  const path = join(temp.path, name)
  await writeFile(path, `#!/bin/sh\n${script}\n`)
  await chmod(path, 0o755)
  return path
}

it.runIf(process.geteuid?.() === 0)('the lines of crontab report to their checks', async () => {
  const [works, fails, prints] = await Promise.all([
    writeJob('works', 'exit 0'),
    writeJob('fails', 'exit 3'),
    writeJob('prints', `case $1 in 20*-*-*) exit 0; esac; exit 4`),
  ])
  const checks = await Promise.all([1, 2, 3].map((number) => app.createCheck({ name: `Line ${number}` })))
  const lines = crontabs.map((text, index) =>
    text
      .replace(/^0 2 \* \* \*/m, '* * * * *')
      .replace(JOB, [works, fails, prints][index]!)
      .replace('/tmp/backup.lock', join(temp.path, 'lock'))
      .replace('http://127.0.0.1:8080', app.pingUrl)
      .replace('<public_id>', checks[index]!.publicId),
  )
  await using _cron = await startCron(lines.join(''))
  const read = () =>
    Promise.all(
      checks.map(async ({ publicId }) => {
        const pings = await app.storedPings(publicId)
        return pings.slice(0, 2).map(({ type, exitCode }) => `${type} ${exitCode}`)
      }),
    )
  const wanted = [[expect.stringMatching('success')], ['fail 3'], ['start null', 'success 0']]
  await expect.poll(read, { timeout: SOON_MS, interval: 500 }).toEqual(wanted)
})

/** With this crontab of root. It is the first process of its namespace, so that its jobs go with it. */
async function startCron(crontab: string): Promise<AsyncDisposable> {
  const root = await fetchDebianPackages({ name: 'cron', packages: ['cron'], scope: 'missing' })
  const folder = join(temp.path, 'cron')
  for (const place of ['var/spool/cron/crontabs', 'run', 'etc/pam.d', 'etc/cron.d'])
    await mkdir(join(folder, place), { recursive: true })
  const permit = ['auth', 'account', 'session'].map((kind) => `${kind} sufficient pam_permit.so\n`)
  await writeFile(join(folder, 'etc/pam.d/cron'), permit.join(''))
  await writeFile(join(folder, 'var/spool/cron/crontabs/root'), crontab, { mode: 0o600 })
  const shell = ['/bin/sh', '-ec', CRON, 'sh', folder, join(root, 'usr/sbin/cron')]
  const child = spawn('unshare', ['--mount', '--pid', '--fork', '--kill-child', ...shell], {
    env: unpackedEnvironment(root),
    stdio: 'ignore',
  })
  const exited = once(child, 'exit')
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

it('systemd has nothing to say against the units', async () => {
  const folder = join(temp.path, 'units')
  await mkdir(folder)
  const job = await writeJob('backup.sh', 'exit 0')
  const names = units.map((unit) => /^# (\S+)\n/.exec(unit)![1]!)
  expect(names).toEqual(['backup.timer', 'backup.service', 'heartbeat-fail@.service'])
  for (const [index, name] of names.entries()) await writeFile(join(folder, name), units[index]!.replace(JOB, job))
  const verified = names.map((name) => join(folder, name.replace('@.', '@backup.service.')))
  const script = 'systemd-analyze verify "$@" 2>&1'
  const env = { SYSTEMD_UNIT_PATH: `${folder}:` }
  expect(await call('sh', ['-c', script, 'sh', ...verified], { cwd: folder, env }, 'Install systemd.')).toBe('')
})
