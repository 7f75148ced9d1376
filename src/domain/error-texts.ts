/**
 * The texts of the errors of use cases, in one place: a use case says what is wrong by a code, or by a code and a
 * reason, and the values of the text. Rules of fields are texts of the schemas.
 */

import { toOneLine } from './plain-text.ts'

/** The names of a resource. Null: of one that is not known. */
type Resource = { readonly cluster: string; readonly namespace: string; readonly name: string } | null

/**
 * Who decides about a pause that is asked for. `isUntil`: the annotation of the resource pauses it until a time.
 * `cronJob`: its name, where it decides.
 */
interface Suspend {
  readonly asked: 'pause' | 'resume'
  readonly is: boolean
  readonly isUntil: boolean
  readonly cronJob: string | undefined
}

interface Managed {
  readonly what?: keyof typeof RESOURCES
  readonly resource: Resource
  readonly suspend?: Suspend
}

/** The kinds of resources that declare what we have. */
const RESOURCES = { check: 'HeartbeatCheck', channel: 'HeartbeatChannel', silence: 'HeartbeatSilence' } as const

/** Of codes that say what is wrong. */
const OF_CODES = {
  slug_taken: ({ of, slug }: { of: 'project' | 'check of the project'; slug: string }) =>
    `another ${of} has the slug "${slug}": choose another`,
  /** `what`: default `check`. */
  managed_by_kubernetes: ({ what = 'check', resource, suspend }: Managed) =>
    suspend === undefined
      ? `${what} is managed by ${nameOfResource(resource, RESOURCES[what])}; change the resource instead`
      : `${nameOfResource(resource)} ${describeSuspend(suspend)} to ${suspend.asked} the check`,
  last_admin: () =>
    'this is the last admin of the organization: create another user, or organization-wide API key that never expires, with the scope admin first',
  project_not_empty: ({ checks }: { checks: number }) =>
    `the project holds ${checks} ${checks === 1 ? 'check' : 'checks'}: delete them first`,
  /** `names`: of the first checks that chose a channel that moves. Left out where the channel is to be removed. */
  channel_in_use: ({ checks, names }: { checks: number; names?: readonly string[] }) =>
    names === undefined ? describeLone(checks) : describeMove(checks, names),
  not_down: () => 'the check is not down: there is nothing to acknowledge',
  muted: () => 'the channel of the delivery is muted: unmute it first',
}

/** Of codes that several things lead to: what led to this error. */
const OF_REASONS = {
  email_taken: () => 'this e-mail address cannot be used for a user: give another one',
  key_made: () =>
    'this API key was created already, and is not shown again: revoke it and create another if you have not copied it',
  channel_made: () => 'this channel was created already, and its secret is not shown again',
  secret_rotated: () =>
    'the channel has a new secret since you were asked, and it is not shown again: make another one if you have not copied it',
  many_channels: ({ of, most }: { of: 'organization' | 'project'; most: number }) =>
    `the ${of} has ${most} channels, the maximum: remove one first`,
  many_silences: ({ most }: { most: number }) =>
    `the project has ${most} silences that have not ended, the maximum: remove one first`,
  channel_configured: () => 'the channel belongs to the configuration: change ALERTMANAGER_URL instead',
  no_secret: ({ kind }: { kind: string }) => `only webhooks have a signing secret; the kind of the channel is ${kind}`,
  channel_gone: () => 'the channel of the delivery was removed',
  channel_moved: () => 'the channel of the delivery serves another project now',
  schedule_unreadable: () =>
    'the stored schedule of this check cannot be read; update the check with a valid schedule first',
  taken: () => 'another check has it',
  many_checks: ({ most }: { most: number }) =>
    `the check was not created: the project has ${most} checks or more, so that pings create no others; remove some, or create it by the API or the dashboard`,
  many_creations: ({ most, seconds }: { most: number; seconds: number }) =>
    `the check was not created: pings have created ${most} checks of this project within a minute; try again in ${seconds} s`,
  many_tests: ({ most, seconds }: { most: number; seconds: number }) =>
    `more than ${most} tests of this channel in an hour; try again in ${seconds} s`,
  many_searches: () => 'too many checks are searched by a unique key now',
  wrong_password: () => 'the current password is wrong',
  no_user: ({ has }: { has: 'no password' | 'no sessions' }) =>
    `an API key has ${has}: send the access token of a log-in`,
  key_expires: ({ asked }: { asked: string }) =>
    `an API key that expires may not ${asked}: use one without an expiry, or log in`,
  key_bound: ({ asked }: { asked: string }) => `an API key that is bound to a project may not ${asked}`,
}

/** What a text is made of. */
type Values<Text> = Text extends (values: infer Given extends object) => string ? Given : object

type OfCodes = typeof OF_CODES
export type CodeParams = { readonly [Code in keyof OfCodes]: Values<OfCodes[Code]> }

type OfReasons = typeof OF_REASONS
export type Reason = { [Why in keyof OfReasons]: { readonly why: Why } & Values<OfReasons[Why]> }[keyof OfReasons]

export const textOfCode = <Code extends keyof CodeParams>(code: Code, params: CodeParams[Code]): string =>
  (OF_CODES[code] as (values: CodeParams[Code]) => string)(params)

export const textOfReason = (reason: Reason): string => (OF_REASONS[reason.why] as (values: Reason) => string)(reason)

export function nameOfResource(resource: Resource, kind: string = RESOURCES.check): string {
  if (resource === null) return `a ${kind}`
  return `${kind} ${resource.namespace}/${resource.name} in cluster ${resource.cluster}`
}

function describeSuspend({ is, isUntil, cronJob }: Suspend): string {
  if (isUntil) return 'has the annotation heartbeat-operator.io/paused-until; change or remove it there'
  return cronJob === undefined
    ? `sets spec.suspend to ${is}; change or remove it there`
    : `follows the CronJob ${cronJob}; change spec.suspend of the CronJob`
}

const describeLone = (checks: number): string =>
  checks === 1
    ? '1 check notifies this channel alone: let it choose another one, or remove the channel with ?force=true, and it notifies all channels again'
    : `${checks} checks notify this channel alone: let them choose another one, or remove the channel with ?force=true, and they notify all channels again`

function describeMove(checks: number, names: readonly string[]): string {
  const more = checks > names.length ? [`${checks - names.length} more`] : []
  const listed = [...names.map((name) => `"${toOneLine(name)}"`), ...more]
  const words = [...listed.slice(0, -2), listed.slice(-2).join(' and ')].join(', ')
  const [who, them] = checks === 1 ? ['a check', 'it'] : ['checks', 'them']
  return `the channel was chosen by ${who} of another project, which could not notify it any more: let ${them} choose other channels first (${words})`
}
