/** The texts of errors whose code says all but some values: of each code, its values and its words. */

import { toOneLine } from './plain-text.ts'

/** The names of a HeartbeatCheck. Null: of a resource that is not known. */
type Resource = { readonly cluster: string; readonly namespace: string; readonly name: string } | null

export interface ErrorParams {
  readonly slug_taken: { readonly of: 'project' | 'check of the project'; readonly slug: string }
  readonly managed_by_kubernetes: { readonly resource: Resource; readonly suspend?: Suspend }
  readonly last_admin: Readonly<Record<never, never>>
  readonly project_not_empty: { readonly checks: number }
  /** `names`: of the first checks that chose a channel that moves. Left out where the channel is to be removed. */
  readonly channel_in_use: { readonly checks: number; readonly names?: readonly string[] }
  readonly muted: Readonly<Record<never, never>>
  readonly not_down: Readonly<Record<never, never>>
}

/** Who decides about a pause that is asked for. `cronJob`: its name, where it decides. */
interface Suspend {
  readonly asked: 'pause' | 'resume'
  readonly is: boolean
  readonly cronJob: string | undefined
}

type Texts = { readonly [Code in keyof ErrorParams]: (params: ErrorParams[Code]) => string }

const TEXTS: Texts = {
  slug_taken: ({ of, slug }) => `another ${of} has the slug "${slug}": choose another`,
  managed_by_kubernetes({ resource, suspend }) {
    const name = nameOfResource(resource)
    if (suspend === undefined) return `check is managed by ${name}; change the resource instead`
    const { asked, is, cronJob } = suspend
    return cronJob === undefined
      ? `${name} sets spec.suspend to ${is}; change or remove it there to ${asked} the check`
      : `${name} follows the CronJob ${cronJob}; change spec.suspend of the CronJob to ${asked} the check`
  },
  last_admin: () =>
    'this is the last admin of the organization: create another user, or organization-wide API key that never expires, with the scope admin first',
  project_not_empty: ({ checks }) =>
    `the project holds ${checks} ${checks === 1 ? 'check' : 'checks'}: delete them first`,
  channel_in_use({ checks, names }) {
    const isOne = checks === 1
    if (names === undefined)
      return isOne
        ? '1 check notifies this channel alone: let it choose another one, or remove the channel with ?force=true, and it notifies all channels again'
        : `${checks} checks notify this channel alone: let them choose another one, or remove the channel with ?force=true, and they notify all channels again`
    const more = checks > names.length ? [`${checks - names.length} more`] : []
    const listed = [...names.map((name) => `"${toOneLine(name)}"`), ...more]
    const words = [...listed.slice(0, -2), listed.slice(-2).join(' and ')].join(', ')
    const [who, them] = isOne ? ['a check', 'it'] : ['checks', 'them']
    return `the channel was chosen by ${who} of another project, which could not notify it any more: let ${them} choose other channels first (${words})`
  },
  muted: () => 'the channel of the delivery is muted: unmute it first',
  not_down: () => 'the check is not down',
}

export function nameOfResource(resource: Resource): string {
  if (resource === null) return 'a HeartbeatCheck'
  return `HeartbeatCheck ${resource.namespace}/${resource.name} in cluster ${resource.cluster}`
}

export const textOf = <Code extends keyof ErrorParams>(code: Code, params: ErrorParams[Code]): string =>
  TEXTS[code](params)
