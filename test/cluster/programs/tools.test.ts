/** Where the tools come from, with stand-ins for them and for Go: the real builds take minutes. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findTool, type ToolName } from './tools.ts'

let folder: string
let notes: string[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-tools-'))
  notes = []
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)

async function writeScript(path: string, body: string): Promise<string> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  return path
}

/** Writes down each call, and builds a program that runs. */
const installGo = () =>
  writeScript(
    at('bin', 'go'),
    `case $1 in env) echo go9.9;; build)
      for word; do [ "$last" = -o ] && out=$word; last=$word; done
      echo "$PWD $*" >> ${at('calls')}; echo program > "$out"
    esac`,
  )

const listBuilds = async () =>
  (await readFile(at('calls'), 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')

const find = (name: ToolName) =>
  findTool(name, {
    environment: { PATH: at('bin'), HOME: folder, XDG_CACHE_HOME: at('cache') },
    note: (line) => notes.push(line),
  })

it.each<[ToolName, string, string, string[]]>([
  [
    'helm',
    'helm-4.3.1',
    'helm.sh/helm/v4/cmd/helm',
    ['version.version=v4.3.1', 'k8sVersionMajor=1', 'k8sVersionMinor=37'],
  ],
  ['kubeconform', 'kubeconform-0.8.0', 'github.com/yannh/kubeconform/cmd/kubeconform', ['main.version=v0.8.0']],
  ['kube-score', 'kube-score-1.20.0', 'github.com/zegl/kube-score/cmd/kube-score', ['main.version=1.20.0']],
  ['coredns', 'coredns-1.14.2', '.', []],
  ['pause', 'pause', '.', []],
])('builds %s once from the module of its name, and tells it its version', async (name, place, source, told) => {
  await installGo()
  const path = await find(name)
  expect(path).toBe(at('cache', 'heartbeat-operator', place, 'bin', name))
  expect(await find(name)).toBe(path)
  const builds = await listBuilds()
  expect(builds).toHaveLength(1)
  expect(builds[0]).toMatch(new RegExp(`/test/cluster/programs/${name} build -mod=readonly .* ${source}$`))
  for (const fact of told) expect(builds[0]).toContain(fact)
  expect(notes[0]).toContain(`: building ${place.replace(/-(?=\d)/, ' ')} with go9.9 into`)
})

it.each<[ToolName, string, string]>([
  ['helm', 'v4.3.0+g0000000', 'the pinned minor version'],
  ['helm', 'v4.10.2', 'a later minor version'],
  ['kubeconform', 'v0.8.1', 'the pinned minor version'],
  ['kube-score', 'kube-score version: 1.21.0, commit: abc, built: 2026', 'a later minor version'],
])('takes %s %s of PATH: it is of %s', async (name, version) => {
  const installed = await writeScript(at('bin', name), `echo '${version}'`)
  expect(await find(name)).toBe(installed)
  expect(notes).toEqual([])
})

it.each<[ToolName, string, string]>([
  ['helm', "echo 'v4.2.9'", 'is 4.2.9, not 4.3 or a later 4.x'],
  ['helm', "echo 'v3.19.0+g3d8990f'", 'is 3.19.0, not 4.3 or a later 4.x'],
  ['helm', "echo 'v5.4.0'", 'is 5.4.0, not 4.3 or a later 4.x'],
  ['kubeconform', 'echo development', '-v names no version'],
  ['kube-score', 'exit 3', 'version names no version'],
])('does not take a %s of PATH for which "%s" stands, and says why', async (name, body, reason) => {
  await installGo()
  const installed = await writeScript(at('bin', name), body)
  expect(await find(name)).not.toBe(installed)
  expect(notes[0]).toContain(`${installed} `)
  expect(notes[0]).toContain(`${reason}: building`)
})

it('takes no coredns of PATH, which may lack a plugin or have others', async () => {
  await installGo()
  await writeScript(at('bin', 'coredns'), "echo 'CoreDNS-1.14.2'")
  expect(await find('coredns')).toContain(at('cache'))
})

it('says what to install when there is no Go either', async () => {
  await expect(find('helm')).rejects.toThrow(
    `The tests need helm 4.3.1: no helm in PATH, none built in ${at('cache', 'heartbeat-operator', 'helm-4.3.1', 'bin')}, and no Go`,
  )
  await expect(find('helm')).rejects.toThrow(/Either install Go .*, or put helm 4\.3 or a later 4\.x into PATH\.$/)
  await expect(find('pause')).rejects.toThrow(/Either install Go .*, or leave out the tests that need a node\.$/)
})
