/** Healthchecks' API as its clients call it: by the header X-Api-Key. */

import type { Scope } from '../../../src/domain/access.ts'
import type { TestApi, TestOrganization } from '../../support/service.ts'

export interface Reply {
  readonly status: number
  readonly headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  readonly body: any
}

export interface Project {
  readonly id: string
  /** Bound to the project. */
  readonly keys: Readonly<Record<'read' | 'write', string>>
}

/** A project of its own, in the first organization or another one. */
export async function addProject(api: TestApi, { keys }: TestOrganization = api): Promise<Project> {
  const key = keys.admin
  const { id } = (await api.client.post('/projects', { name: 'Test' }, { key })).body
  const bind = async (scope: Scope): Promise<string> =>
    (await api.client.post('/api-keys', { name: scope, scope, project_id: id }, { key })).body.key
  return { id, keys: { read: await bind('read'), write: await bind('write') } }
}

export type Call = (
  method: string,
  path: string,
  options?: {
    readonly key?: string | null
    readonly json?: unknown
    readonly body?: string
    readonly headers?: Record<string, string>
  },
) => Promise<Reply>

/** `path` begins behind /api/; the key is `defaultKey()` unless another one is given (null: none). */
export function callerOf(api: TestApi, defaultKey: () => string): Call {
  return async (
    method,
    path,
    { key = defaultKey(), json, body = json === undefined ? undefined : JSON.stringify(json), headers } = {},
  ) => {
    const response = await fetch(`${api.url.replace(/\/api\/v1$/, '')}/api/${path}`, {
      method,
      headers: { ...(key === null ? {} : { 'x-api-key': key }), ...headers },
      ...(body === undefined ? {} : { body }),
    })
    const text = await response.text()
    const isJson = response.headers.get('content-type')?.includes('json') ?? false
    return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text }
  }
}
