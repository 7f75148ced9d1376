/** Where the tests' Alertmanager comes from, with stand-ins for it and for apt: the real download is 25 MB. */

import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { copyTemplates, findAlertmanager } from '../../support/alertmanager-program.ts'

let folder: string
let notes: string[]
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-alertmanager-'))
  notes = []
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)
async function writeScript(path: string, body: string): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${body}\n`)
  await chmod(path, 0o755)
  return path
}

/** apt brings a package, and bash (with dpkg-deb and tar) unpacks a program that names the folder of its templates. */
async function installApt(): Promise<void> {
  await writeScript(at('bin', 'apt-get'), 'case "$*" in *" download "*) echo package > program_0.25.0_amd64.deb;; esac')
  await writeScript(
    at('bin', 'bash'),
    `for word; do root=$word; done; cd "$root/usr/bin"
    echo 'opens /usr/share/prometheus/alertmanager/default.tmpl' > prometheus-alertmanager
    /bin/chmod 755 prometheus-alertmanager`,
  )
}

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

it("fetches Debian's once, and makes it look for its templates where it runs", async () => {
  await installApt()
  const path = await find()
  expect(path).toMatch(
    /\/cache\/heartbeat-operator\/alertmanager-[0-9a-f]{12}\/root\/usr\/bin\/prometheus-alertmanager$/,
  )
  expect(await readFile(path, 'utf8')).toBe(`opens .${'/'.repeat(33)}/default.tmpl\n`)
  expect(notes[0]).toContain("fetching Debian's prometheus-alertmanager into")
  await rm(at('bin'), { recursive: true })
  expect(await find()).toBe(path)
})

it('brings the templates to where it runs', async () => {
  const program = await writeScript(at('usr', 'bin', 'prometheus-alertmanager'), 'true')
  for (const name of ['default.tmpl', 'email.html'])
    await writeScript(at('usr', 'share', 'prometheus', 'alertmanager', name), '')
  await mkdir(at('home'))
  await copyTemplates(program, at('home'))
  expect(await readdir(at('home'))).toEqual(['default.tmpl'])
})

it('says what to set where there is no apt', async () => {
  await expect(find()).rejects.toThrow(/there is no apt-get on this system\nSet ALERTMANAGER_BIN/)
})
