/**
 * Kubeconfig files as kubectl reads them: of several files the first to name an entry wins, paths are relative to their
 * file, and users keep the fields that client-node drops. Messages name the file and never quote it.
 */

import { readFile } from 'node:fs/promises'
import { dirname, isAbsolute, resolve } from 'node:path'
import type { Cluster, Context, User } from '@kubernetes/client-node'
import { StartFault } from '../runtime/start-fault.ts'

/** A kubeconfig that cannot be used. The message names the file or the context, and what to do. */
export class KubeconfigError extends StartFault {
  override readonly name = 'KubeconfigError'
}

/** A user with the fields that client-node drops. */
export interface Account {
  readonly user: User
  readonly tokenFile: string | undefined
  readonly groups: readonly string[]
}

export const ANONYMOUS: Account = { user: { name: 'anonymous' }, tokenFile: undefined, groups: [] }

export interface Found<T> {
  readonly file: string
  readonly value: T
}

export interface Entries {
  currentContext: string | undefined
  readonly clusters: Map<string, Found<Cluster>>
  readonly contexts: Map<string, Found<Context>>
  readonly users: Map<string, Found<Account>>
}

/**
 * The first file to name an entry wins, and missing files are skipped, as with kubectl. Throws KubeconfigError when all
 * are missing.
 */
export async function mergeFiles(files: readonly string[]): Promise<Entries> {
  const entries: Entries = { currentContext: undefined, clusters: new Map(), contexts: new Map(), users: new Map() }
  let found = 0
  for (const file of files) {
    const text = await readKubeconfigFile(file)
    if (text === null) continue
    found += 1
    await addEntries(entries, file, text)
  }
  if (found === 0)
    throw new KubeconfigError(
      `KUBECONFIG names ${files.join(', ')}, which is not there. Put the kubeconfig there, name another, or unset KUBECONFIG.`,
    )
  return entries
}

async function readKubeconfigFile(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return null
    throw new KubeconfigError(
      `The kubeconfig ${file} cannot be read (${code}). Make it a file that this process may read.`,
    )
  }
}

interface RawUsers {
  readonly users?: readonly {
    readonly name?: string
    readonly user?: { readonly tokenFile?: string; readonly 'as-groups'?: readonly string[] } | null
  }[]
}

async function addEntries(entries: Entries, file: string, text: string): Promise<void> {
  if (text.trim() === '') return
  const { KubeConfig, loadYaml } = await import('@kubernetes/client-node')
  const read = new KubeConfig()
  let raw: RawUsers | null
  try {
    raw = loadYaml<RawUsers | null>(text)
    if (raw === null || raw === undefined) return
    read.loadFromString(text, { onInvalidEntry: 'filter' })
  } catch (error) {
    // The parser's own message quotes lines of the file, which may hold credentials.
    const line = (error as { mark?: { line?: number } }).mark?.line
    const where = line === undefined ? '' : ` (line ${line + 1})`
    throw new KubeconfigError(`${file} is not a kubeconfig: it cannot be parsed as YAML${where}. Fix or replace it.`)
  }
  const folder = dirname(resolve(file))
  read.makePathsAbsolute(folder)
  const add = <T>(map: Map<string, Found<T>>, name: string, value: T) => {
    if (!map.has(name)) map.set(name, { file, value })
  }
  entries.currentContext ||= read.currentContext
  for (const cluster of read.clusters) add(entries.clusters, cluster.name, cluster)
  for (const context of read.contexts) add(entries.contexts, context.name, context)
  for (const user of read.users) {
    const own = raw.users?.find(({ name }) => name === user.name)?.user
    add(entries.users, user.name, {
      user: withPlugin(user, folder),
      tokenFile: own?.tokenFile === undefined ? undefined : resolve(folder, own.tokenFile),
      groups: own?.['as-groups'] ?? [],
    })
  }
}

export interface ExecPlugin {
  readonly apiVersion?: string
  readonly command?: string
  readonly env?: readonly { name: string; value: string }[] | null
}

/** Some plugins fail without KUBERNETES_EXEC_INFO, which client-node does not set. */
function withPlugin(user: User, folder: string): User {
  const exec = user.exec as ExecPlugin | null | undefined
  if (exec?.command === undefined) return user
  const { command, apiVersion, env } = exec
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } }
  const isRelative = command.includes('/') && !isAbsolute(command)
  return {
    ...user,
    exec: {
      ...exec,
      command: isRelative ? resolve(folder, command) : command,
      env: [{ name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }, ...(env ?? [])],
    },
  }
}
