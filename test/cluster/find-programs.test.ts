/** Where the programs come from, with stand-ins for them and for Go: the real build takes minutes. */

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { findPrograms } from '../../tools/programs/find.ts'
import { PROGRAM_NAMES, type ProgramName, readPinnedVersion } from '../../tools/programs/programs.ts'

let folder: string
let notes: string[]

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heartbeat-programs-'))
  notes = []
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const at = (...names: string[]) => join(folder, ...names)

async function writeScript(path: string, body: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true })
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 })
}

async function install(place: string, names: readonly ProgramName[], version = '1.36.0'): Promise<void> {
  for (const name of names) await writeScript(at(place, name), `echo "Kubernetes v${version}"`)
}

/** Writes down each call; builds a program, or fails as a compiler does. */
async function installGo(failure?: string): Promise<void> {
  const build =
    failure === undefined
      ? `for word; do [ "$last" = -o ] && out=$word; last=$word; done; echo program > "$out"`
      : `echo '${failure}' >&2; exit 1`
  const script = `case $1 in env) echo go9.9;; build) echo "$@" >> ${at('calls')}; ${build};; esac`
  await writeScript(at('go-bin', 'go'), script)
}

const listBuilt = async () =>
  (await readFile(at('calls'), 'utf8').catch(() => ''))
    .trimEnd()
    .split('\n')
    .filter(Boolean)
    .map((call) => call.split(' ').at(-1))

function options(environment: Record<string, string> = {}) {
  const PATH = ['bin', 'go-bin'].map((name) => at(name)).join(':')
  const given = { PATH, HOME: folder, XDG_CACHE_HOME: at('cache'), ...environment }
  return { environment: given, note: (line: string) => notes.push(line) }
}
const find = (environment?: Record<string, string>) => findPrograms(options(environment))

const NEWEST = await readPinnedVersion('newest')
const OLDEST = await readPinnedVersion('oldest')

it('takes the set of KUBEBUILDER_ASSETS, and from PATH what is not in it', async () => {
  await install('assets', ['etcd', 'kube-apiserver', 'kubectl'])
  await install('bin', PROGRAM_NAMES)
  const { paths, version } = await find({ KUBEBUILDER_ASSETS: at('assets') })
  expect(paths).toEqual({
    etcd: at('assets', 'etcd'),
    'kube-apiserver': at('assets', 'kube-apiserver'),
    'kube-controller-manager': at('bin', 'kube-controller-manager'),
    kubectl: at('assets', 'kubectl'),
  })
  expect([version, notes]).toEqual(['1.36.0', []])
})

it('builds the whole set once when one program is missing, and says which', async () => {
  await installGo()
  await install('assets', ['etcd', 'kube-apiserver', 'kubectl'])
  const { paths, version } = await find({ KUBEBUILDER_ASSETS: at('assets') })
  const built = at('cache', 'heartbeat-operator', `kubernetes-${NEWEST}`, 'bin')
  expect([version, paths['kube-apiserver']]).toEqual([NEWEST, join(built, 'kube-apiserver')])
  expect(notes[0]).toContain(`no kube-controller-manager in KUBEBUILDER_ASSETS (${at('assets')}) and PATH: building`)
  expect(notes).toContain('building kube-apiserver (2 of 4) ...')
  expect(notes).toContain('built kubectl: 0 s, 0 MiB')
  expect(await listBuilt()).toEqual([
    'go.etcd.io/etcd/server/v3',
    'k8s.io/kubernetes/cmd/kube-apiserver',
    'k8s.io/kubernetes/cmd/kube-controller-manager',
    'k8s.io/kubernetes/cmd/kubectl',
  ])
  notes = []
  expect((await find()).paths).toEqual(paths)
  expect([notes, await listBuilt()]).toEqual([[], expect.objectContaining({ length: 4 })])
})

it('says what to install or set when there is no Go either', async () => {
  await install('bin', ['kubectl'])
  const refusal = find()
  await expect(refusal).rejects.toThrow(
    'no etcd, kube-apiserver, kube-controller-manager in PATH (KUBEBUILDER_ASSETS is not set), none built in ' +
      at('cache', 'heartbeat-operator', `kubernetes-${NEWEST}`, 'bin'),
  )
  await expect(refusal).rejects.toThrow(/Either install Go \(.*\) and start again, or set KUBEBUILDER_ASSETS/)
})

it('quotes Go when a build fails, and leaves nothing that looks built', async () => {
  await installGo('dial tcp: no route to host')
  const message = /go build failed in .* look at the network and at GOPROXY .*no route to host/s
  await expect(find()).rejects.toThrow(message)
  await expect(find()).rejects.toThrow(message)
})

it.each([
  ['that are too old', '1.29.3', '1.29.3', '', `kube-apiserver is 1.29.3, older than the oldest supported, ${OLDEST}`],
  ['that do not belong together', '1.36.0', '1.35.1', '', 'kube-apiserver is 1.36.0 but'],
  ['that are not the oldest when that is asked for', '1.36.0', '1.36.0', 'oldest', `asks for the oldest, ${OLDEST}`],
])('does not use programs %s', async (_, server, controllers, pin, reason) => {
  await installGo()
  await install('bin', PROGRAM_NAMES, server)
  await install('bin', ['kube-controller-manager'], controllers)
  const { version } = await find({ TEST_KUBERNETES: pin })
  expect(version).toBe(pin === 'oldest' ? OLDEST : NEWEST)
  expect(notes[0]).toContain(reason)
})

it('refuses a TEST_KUBERNETES that it does not know, and a program that does not run', async () => {
  await expect(find({ TEST_KUBERNETES: '1.30' })).rejects.toThrow('TEST_KUBERNETES is "1.30": set it to newest')
  await install('bin', PROGRAM_NAMES)
  await writeScript(at('bin', 'kube-apiserver'), 'exit 3')
  await expect(find()).rejects.toThrow(`${at('bin', 'kube-apiserver')} --version fails: replace it`)
})
