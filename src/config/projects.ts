/** Reads PROJECTS: a JSON object with the slugs of the projects that each namespace may use. */

import { z } from 'zod'
import { LIMITS } from '../domain/limits.ts'
import { parseJson } from './values.ts'

const EXAMPLE = '{"shop":["payments","shared"]}'
/** RFC 1123 label: the rule of Kubernetes for namespaces, and ours for the cluster's name. */
export const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const SLUG = new RegExp(`^[a-z0-9_-]{1,${LIMITS.slugLength}}$`)

/** By namespace; the first slug is the project of checks that name none. */
export type NamespaceProjects = ReadonlyMap<string, readonly string[]>

export const namespaceProjects = z.string().transform((text, context): NamespaceProjects => {
  const read = parseJson(text)
  const fault = findFault(read)
  if (fault === null) return new Map(Object.entries(read as Record<string, string[]>))
  context.addIssue(`must be a JSON object such as ${EXAMPLE}: ${fault}`)
  return z.NEVER
})

function findFault(read: unknown): string | null {
  if (read === undefined) return 'it is no JSON'
  if (typeof read !== 'object' || read === null || Array.isArray(read)) return 'it is no object'
  for (const [namespace, slugs] of Object.entries(read)) {
    if (!DNS_LABEL.test(namespace)) return `${JSON.stringify(namespace)} is no name of a namespace`
    if (!Array.isArray(slugs)) return `${namespace} has no array of slugs`
    const wrong = slugs.findIndex((slug) => typeof slug !== 'string' || !SLUG.test(slug))
    if (wrong >= 0) return `entry ${wrong + 1} of ${namespace} is no slug of a project`
  }
  return null
}
