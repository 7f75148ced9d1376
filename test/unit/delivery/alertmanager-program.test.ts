/** Where the tests' Alertmanager comes from, with stand-ins for it and for apt: the real download is 25 MB. */

import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findAlertmanager } from '../../support/alertmanager-program.ts'

let folder: string
let notes: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-alertmanager-'))
  notes = []
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)
const BUILT = ['cache', 'heartbeat-operator', 'alertmanager-0.25.0-1+b4', 'usr', 'bin', 'prometheus-alertmanager']

async function writeScript(path: string, body: string): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${body}\n`)
  await chmod(path, 0o755)
  return path
}

/** Writes down each call, and unpacks a program that names the folder of its templates. */
async function installApt({ update = '', seconds = 0 } = {}): Promise<void> {
  const words = 'for word; do last=$word; done'
  const download = 'echo package > prometheus-alertmanager_0.25.0-1+b4_amd64.deb'
  await writeScript(
    at('bin', 'apt-get'),
    `${words}; echo "$*" >> ${at('calls')}
    if [ "$last" = update ]; then /bin/sleep ${seconds}; ${update || ':'}; else ${download}; fi`,
  )
  await writeScript(
    at('bin', 'dpkg-deb'),
    `/bin/mkdir -p $3/usr/bin && echo 'opens /usr/share/prometheus/alertmanager/default.tmpl' > $3/usr/bin/prometheus-alertmanager
    /bin/chmod 755 $3/usr/bin/prometheus-alertmanager`,
  )
}

const listCalls = async () => (await readFile(at('calls'), 'utf8').catch(() => '')).split('\n').filter(Boolean)
const find = (environment: Record<string, string> = {}) =>
  findAlertmanager({
    environment: { PATH: at('bin'), HOME: folder, XDG_CACHE_HOME: at('cache'), ...environment },
    note: (line) => notes.push(line),
  })

it('takes the one that it is told, and says when that is none', async () => {
  const given = await writeScript(at('else', 'am'), 'true')
  await writeScript(at('bin', 'alertmanager'), 'true')
  expect(await find({ ALERTMANAGER_BIN: given })).toBe(given)
  await expect(find({ ALERTMANAGER_BIN: at('nothing') })).rejects.toThrow(
    `ALERTMANAGER_BIN is ${at('nothing')}, which is no program`,
  )
})

it.each(['prometheus-alertmanager', 'alertmanager'])('takes %s of PATH', async (name) => {
  const installed = await writeScript(at('bin', name), 'true')
  expect(await find()).toBe(installed)
  expect(notes).toEqual([])
})

it("fetches Debian's once, with lists and a cache of its own, and makes it look for its templates where it runs", async () => {
  await installApt()
  const path = await find()
  expect(path).toBe(at(...BUILT))
  expect(await readFile(path, 'utf8')).toBe(`opens .${'/'.repeat(33)}/default.tmpl\n`)
  expect(notes[0]).toContain('fetching')
  const calls = await listCalls()
  expect(calls).toHaveLength(2)
  for (const call of calls)
    expect(call).toMatch(/Dir::State::lists=\S*\.alertmanager-\S*\/lists .*Dir::Cache=\S*\.alertmanager-/)
  expect(await readdir(at('cache', 'heartbeat-operator'))).toEqual(['alertmanager-0.25.0-1+b4'])

  await rm(at('bin'), { recursive: true })
  expect(await find()).toBe(path)
})

it('lets one fetch and the other wait for it', async () => {
  await installApt({ seconds: 0.2 })
  expect(await Promise.all([find(), find()])).toEqual([at(...BUILT), at(...BUILT)])
  expect(await listCalls()).toHaveLength(2)
  expect(notes.filter((note) => note.startsWith(`process ${process.pid} fetches`))).toHaveLength(1)
})

it('says what to set where there is no apt', async () => {
  await expect(find()).rejects.toThrow(
    /apt-get could not get Debian's: there is none on this system\. Set ALERTMANAGER_BIN/,
  )
})

it('tells what apt said, and leaves nothing that looks fetched', async () => {
  await installApt({ update: 'echo "E: no network" >&2; exit 100' })
  await expect(find()).rejects.toThrow(/E: no network\. Set ALERTMANAGER_BIN/)
  await expect(find()).rejects.toThrow('E: no network')
  expect(await readdir(at('cache', 'heartbeat-operator'))).toEqual([])
})
