/** The variables about the cluster and its CronJobs, and PROJECTS: a JSON object with the slugs of the projects that each namespace may use. */

import { z } from 'zod'
import type { CronJobSettings } from '../domain/cron-job-settings.ts'
import { LIMITS } from '../domain/limits.ts'
import { isTimeZone } from '../domain/time-zone.ts'

const EXAMPLE = '{"shop":["payments","shared"]}'
/** RFC 1123 label: the rule of Kubernetes for namespaces, and ours for the cluster's name. */
export const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const SLUG = new RegExp(`^[a-z0-9_-]{1,${LIMITS.slugLength}}$`)

/** By namespace; the first slug is the project of checks that name none. */
export type NamespaceProjects = ReadonlyMap<string, readonly string[]>

export interface KubernetesConfig {
  readonly clusterName: string
  /** The id of an installation whose HeartbeatChecks this one takes over. */
  readonly takeOver: string | null
  /** Which resources get the check of a deleted one back: `name`, of the same name; `uid`, only in the same namespace. */
  readonly revival: 'name' | 'uid'
  /** Replaces the annotation of the Namespaces; null: they decide. */
  readonly projects: NamespaceProjects | null
  readonly isProjectAnnotationOn: boolean
  readonly cronJobs: CronJobSettings
}

const oneOf = <const T extends string>(...values: T[]) =>
  z.enum(values, { error: () => `must be one of ${values.join(', ')}` })

const namespaceProjects = z.string().transform((text, context): NamespaceProjects => {
  const read = readJson(text)
  const fault = findFault(read)
  if (fault === null) return new Map(Object.entries(read as Record<string, string[]>))
  context.addIssue(`must be a JSON object such as ${EXAMPLE}: ${fault}`)
  return z.NEVER
})

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

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

/** Their names are in config.ts. */
export const KUBERNETES_VARIABLES = {
  clusterName: z
    .string()
    .regex(DNS_LABEL, 'must be at most 63 lower case letters, digits and -, with a letter or digit at both ends')
    .default('default'),
  takeOver: z
    .guid('must be the id of an installation, a UUID: status.installation of its HeartbeatChecks')
    .transform((text) => text.toLowerCase())
    .optional(),
  revival: oneOf('name', 'uid').default('name'),
  projects: namespaceProjects.optional(),
  projectAnnotation: oneOf('on', 'off').default('on'),
  watchCronJobs: oneOf('labelled', 'all', 'off').default('labelled'),
  cronJobTimeZone: z
    .string()
    .refine(isTimeZone, 'must be the name of an IANA time zone such as Europe/Berlin or Etc/UTC')
    .default('Etc/UTC'),
  cronJobLogs: oneOf('off', 'failed').default('off'),
}
