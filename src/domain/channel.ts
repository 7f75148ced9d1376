/** Channels: where events go (design, section 5). */

import type { Tenant } from './access.ts'
import type { Hold } from './check.ts'
import { type CheckEventType, STANDARD_EVENT_TYPES } from './event.ts'

/** What a channel can be. Each kind is a folder in channels/kinds. */
export const CHANNEL_KINDS = [
  'webhook',
  'alertmanager',
  'slack',
  'email',
  'teams',
  'discord',
  'googlechat',
  'pagerduty',
  'telegram',
  'ntfy',
  'matrix',
  'apprise',
] as const
export type ChannelKind = (typeof CHANNEL_KINDS)[number]

/**
 * Kinds whose receivers keep an incident open until they are notified of its end. A channel of such a kind that wants
 * `check.down` gets the ends of incidents, whichever events it lists, and nothing else.
 */
export const INCIDENT_KINDS: readonly ChannelKind[] = ['alertmanager', 'pagerduty']

/** Those of them that can know that a person has the incident. */
export const ACKNOWLEDGING_KINDS: readonly ChannelKind[] = ['pagerduty']

/** The events of a channel that does not choose. */
export function standardEventsOf(kind: ChannelKind): readonly CheckEventType[] {
  // These receivers wake people: a warning can wait until the morning.
  return INCIDENT_KINDS.includes(kind)
    ? STANDARD_EVENT_TYPES.filter((type) => type !== 'check.warned')
    : STANDARD_EVENT_TYPES
}

/** Of a delivery. Stored rows hold the place in this list: only append. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'suppressed'] as const
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number]

/** Why a notification is not sent. `muted`, `escalation`: by its channel. */
export const SUPPRESSIONS = ['muted', 'flapping', 'acknowledged', 'silenced', 'dependency', 'escalation'] as const
export type Suppression = (typeof SUPPRESSIONS)[number]

/** What suppresses a notification. */
export const CAUSE_KINDS = ['channel', 'silence', 'check'] as const
export interface Cause {
  readonly kind: (typeof CAUSE_KINDS)[number]
  readonly id: string
}

/** Why no channel is sent an event. */
export interface Held {
  readonly reason: Exclude<Suppression, 'muted' | 'escalation'>
  /** Null: nothing that has an id. */
  readonly cause: Cause | null
}

export function heldBy({ by, id }: Pick<Hold, 'by' | 'id'>): Held {
  return by === 'silence'
    ? { reason: 'silenced', cause: { kind: 'silence', id } }
    : { reason: 'dependency', cause: { kind: 'check', id } }
}

/** The `last_error` of deliveries that were pending when people decided that their channel gets them no more. */
export const WITHDRAWN = {
  muted: 'the channel was muted',
  /** Events of the old project: users of the new one may not see them. */
  moved: 'the channel serves another project now',
  removed: 'the channel was removed, and is back since',
} as const

/**
 * `configuration`: the channel of ALERTMANAGER_URL. It serves all organizations. `kubernetes`: a HeartbeatChannel
 * declares it. The API changes neither.
 */
export const CHANNEL_MANAGERS = ['api', 'kubernetes', 'configuration'] as const
export type ChannelManager = (typeof CHANNEL_MANAGERS)[number]

/**
 * What a sender needs to reach the receiver; each kind adds its own fields, as `channels/kinds/slack/config.ts` does.
 * Settings are stored sealed as a whole, because an address alone can be a credential, as Slack's is.
 */
export interface ChannelSettings {
  readonly kind: ChannelKind
}

/** A channel with its settings unsealed: the input of a sender. */
export interface OpenChannel<Settings extends ChannelSettings = ChannelSettings> {
  readonly id: string
  readonly name: string
  /** The operator of the installation chose its address, so it may be a private one. */
  readonly isTrusted: boolean
  /** Whose it is; undefined for that of the installation. */
  readonly tenant?: Tenant
  readonly settings: Settings
}

/** Channels of one project, and channels that serve a whole organization. Each event is written once for each of them, in the transaction of its flip. */
export const MAX_CHANNELS = 20

/** How long after the beginning of an incident a channel is notified of it, in seconds. */
export const AFTER_SECONDS = { min: 0, max: 86_400 } as const

/** The channel of ALERTMANAGER_URL. */
export const INSTALLATION_CHANNEL_ID = '00000000-0000-7000-8000-000000000001'
