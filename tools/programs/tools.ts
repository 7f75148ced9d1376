/** Finds the tools of the tests: of PATH when they are new enough there, else our own, built once into the user's cache folder. */

import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { buildPrograms } from './build.ts'
import { cacheFolder, findIn, listPath } from './places.ts'
import { type Environment, type Note, readRequiredVersion } from './programs.ts'

const run = promisify(execFile)

/** Built from the module in the folder of its name. */
interface Tool {
  /** Whose version is the tool's; null where the program is our own. */
  readonly module: string | null
  /** Default: the module's own folder. */
  readonly source?: string
  /** What prints its version; without it PATH is not looked at. */
  readonly ask?: readonly string[]
  /** Variables that the linker sets, as a build from a module knows no version. */
  readonly variables?: (version: string, folder: string) => Promise<Record<string, string>>
  /** Of a build from nothing on two cores. */
  readonly cost: string
}

const COMMON = 'helm.sh/helm/v4/pkg/chart/common'

const TOOLS = {
  helm: {
    module: 'helm.sh/helm/v4',
    source: 'helm.sh/helm/v4/cmd/helm',
    ask: ['version', '--short'],
    // It renders for the Kubernetes version of its client library; without these variables, for 1.20.
    variables: async (version, folder) => {
      const minor = (await readRequiredVersion(folder, 'k8s.io/client-go')).split('.')[1]!
      const kubernetes = { [`${COMMON}.k8sVersionMajor`]: '1', [`${COMMON}.k8sVersionMinor`]: minor }
      return { 'helm.sh/helm/v4/internal/version.version': `v${version}`, ...kubernetes }
    },
    cost: 'about 2 minutes on two cores',
  },
  kubeconform: {
    module: 'github.com/yannh/kubeconform',
    source: 'github.com/yannh/kubeconform/cmd/kubeconform',
    ask: ['-v'],
    variables: async (version) => ({ 'main.version': `v${version}` }),
    cost: 'about half a minute on two cores',
  },
  'kube-score': {
    module: 'github.com/zegl/kube-score',
    source: 'github.com/zegl/kube-score/cmd/kube-score',
    ask: ['version'],
    variables: async (version) => ({ 'main.version': version }),
    cost: 'about half a minute on two cores',
  },
  coredns: { module: 'github.com/coredns/coredns', cost: 'about a minute on two cores' },
  pause: { module: null, cost: 'a few seconds' },
} as const satisfies Record<string, Tool>

export type ToolName = keyof typeof TOOLS

/**
 * The absolute path of a tool. helm, kubeconform and kube-score may come from PATH, of the pinned minor version or a later one
 * of the same major; coredns (with the plugins of the test cluster) and pause are always our own. A first build is reported line by
 * line through `note` (default: stderr). Throws ProgramsError.
 */
export async function findTool(
  name: ToolName,
  options: { environment?: Environment; note?: Note } = {},
): Promise<string> {
  const { environment = process.env, note = (line) => process.stderr.write(`${line}\n`) } = options
  const tool: Tool = TOOLS[name]
  const module = fileURLToPath(new URL(`./${name}/`, import.meta.url))
  const version = tool.module === null ? null : await readRequiredVersion(module, tool.module)
  const found = await searchTool(name, tool, version, environment)
  if ('path' in found) return found.path
  const title = version === null ? name : `${name} ${version}`
  const folder = join(cacheFolder(environment), title.replace(' ', '-'), 'bin')
  const variables = version === null ? {} : ((await tool.variables?.(version, module)) ?? {})
  const programs = [{ name, source: tool.source ?? '.', variables }]
  const otherwise =
    tool.ask === undefined ? 'leave out the tests that need a node' : `put ${name} ${describeRange(version!)} into PATH`
  const texts = { title, reason: found.reason, need: title, cost: tool.cost, otherwise }
  await buildPrograms({ ...texts, module, programs, folder, environment, note })
  return join(folder, name)
}

async function searchTool(
  name: ToolName,
  { ask }: Tool,
  version: string | null,
  environment: Environment,
): Promise<{ readonly path: string } | { readonly reason: string }> {
  if (ask === undefined || version === null) return { reason: `no ${name} yet` }
  const path = await findIn(listPath(environment), name)
  if (path === null) return { reason: `no ${name} in PATH` }
  const there = await askVersion(path, ask)
  if (there === null) return { reason: `${path} ${ask.join(' ')} names no version` }
  if (isInRange(there, version)) return { path }
  return { reason: `${path} is ${there}, not ${describeRange(version)}` }
}

async function askVersion(path: string, ask: readonly string[]): Promise<string | null> {
  const output = await run(path, [...ask]).catch(() => null)
  return output === null ? null : (/\bv?(\d+\.\d+\.\d+)\b/.exec(output.stdout)?.[1] ?? null)
}

function isInRange(version: string, pinned: string): boolean {
  const [major, minor] = version.split('.').map(Number)
  const [pinnedMajor, pinnedMinor] = pinned.split('.').map(Number)
  return major === pinnedMajor && minor! >= pinnedMinor!
}

function describeRange(pinned: string): string {
  const [major, minor] = pinned.split('.')
  return `${major}.${minor} or a later ${major}.x`
}
