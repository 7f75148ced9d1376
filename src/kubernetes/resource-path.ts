import type { ResourceType } from './objects.ts'

export interface ResourceLocation {
  readonly namespace?: string | undefined
  readonly name?: string | undefined
  readonly subresource?: string | undefined
}

export type Query = Readonly<Record<string, string | number | boolean | undefined>>

/** Returns `/apis/apps/v1/namespaces/shop/deployments/prices/status`; the core group is under `/api`. */
export function pathOf(type: ResourceType, where: ResourceLocation): string {
  const parts = type.group === '' ? ['api', type.version] : ['apis', type.group, type.version]
  if (where.namespace !== undefined) parts.push('namespaces', where.namespace)
  parts.push(type.plural)
  if (where.name !== undefined) parts.push(where.name)
  if (where.subresource !== undefined) parts.push(where.subresource)
  return `/${parts.map(encodeURIComponent).join('/')}`
}

/** Leaves out undefined values. Returns the empty string when none is left. */
export function queryOf(values: Query): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values)) if (value !== undefined) query.set(name, String(value))
  return query.size === 0 ? '' : `?${query}`
}

/** Returns `heartbeatchecks shop/nightly`, for messages. */
export function describeLocation(type: ResourceType, where: ResourceLocation): string {
  const name = [where.namespace, where.name].filter((part) => part !== undefined).join('/')
  return name === '' ? type.plural : `${type.plural} ${name}`
}
