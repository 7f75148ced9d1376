/** Channels: where events go (design, section 5). */

import type { Instant } from './check.ts'

export const CHANNEL_KINDS = ['webhook', 'alertmanager', 'slack', 'email'] as const
export type ChannelKind = (typeof CHANNEL_KINDS)[number]

/** `configuration`: the one that ALERTMANAGER_URL makes, for all organizations; nobody changes it by the API. */
export const CHANNEL_MANAGERS = ['api', 'configuration'] as const
export type ChannelManager = (typeof CHANNEL_MANAGERS)[number]

/** Standard Webhooks: `whsec_` and the key in base64. */
export interface SigningSecret {
  readonly secret: string
  /** Null: until another replaces it. */
  readonly expiresAt: Instant | null
}

/**
 * What a channel needs to reach somebody. Sealed as a whole when stored, since an address alone may be a credential (Slack's
 * is), and shown only as far as `channels/present-config.ts` lets it.
 */
export type ChannelSettings =
  /** The newest secret first. Each that has not expired signs. */
  | { readonly kind: 'webhook'; readonly url: string; readonly secrets: readonly SigningSecret[] }
  /** One URL for each peer of a cluster, without /api/v2/alerts. `labels` are added to those of every alert, and win. */
  | {
      readonly kind: 'alertmanager'
      readonly urls: readonly string[]
      readonly labels: Readonly<Record<string, string>>
    }
  | { readonly kind: 'slack'; readonly url: string }
  | { readonly kind: 'email'; readonly to: readonly string[] }

export type SettingsOf<Kind extends ChannelKind> = Extract<ChannelSettings, { kind: Kind }>

/** A channel with its settings opened: what a sender works with. */
export interface OpenChannel<Kind extends ChannelKind = ChannelKind> {
  readonly id: string
  readonly name: string
  /** Whoever runs the installation chose its address: it may be a private one. */
  readonly isTrusted: boolean
  readonly settings: SettingsOf<Kind>
}

export const CHANNEL_LIMITS = {
  /** Of an organization: each flip is written once for every channel that wants it, in the transaction of its ping. */
  channels: 20,
  urlLength: 2_048,
  alertmanagerUrls: 10,
  alertmanagerLabels: 20,
  labelLength: 200,
  emailRecipients: 20,
} as const

/** The one that ALERTMANAGER_URL makes. */
export const INSTALLATION_CHANNEL_ID = '00000000-0000-7000-8000-000000000001'

/** After a rotation the secret before the last still signs for so long, so that receivers can change over. */
export const SECRET_OVERLAP_MS = 24 * 3_600_000
