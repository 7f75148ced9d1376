/**
 * What of a channel's settings is shown, and what becomes of it when it comes back. Whatever may be a secret is shown as `…`:
 * the credentials in a URL, its query, and of a Slack URL all but the origin. A URL that comes back as it was shown is the stored
 * one, so that what was read can be written again and loses nothing.
 */

import type { ChannelSettings, SettingsOf, SigningSecret } from '../domain/channel.ts'
import { invalidField } from '../domain/errors.ts'
import { makeSecret } from './signing-secret.ts'

/** Settings as people give and see them. */
export type ChannelConfig =
  | { readonly kind: 'webhook'; readonly url: string }
  | SettingsOf<'alertmanager'>
  | SettingsOf<'slack'>
  | SettingsOf<'email'>

/** Labels that are left out keep their value; there are none in a new channel. */
export type ConfigInput =
  | Exclude<ChannelConfig, { kind: 'alertmanager' }>
  | (Omit<SettingsOf<'alertmanager'>, 'labels'> & {
      readonly labels?: SettingsOf<'alertmanager'>['labels'] | undefined
    })

const HIDDEN = '…'

export function presentConfig(settings: ChannelSettings): ChannelConfig {
  switch (settings.kind) {
    case 'webhook':
      return { kind: 'webhook', url: hideSecrets(settings.url) }
    case 'slack':
      return { kind: 'slack', url: hidePath(settings.url) }
    case 'alertmanager':
      return { ...settings, urls: settings.urls.map(hideSecrets) }
    case 'email':
      return settings
  }
}

/**
 * The settings that `config` stands for. `stored`: those of the channel until now, of the same kind; null when it has none, or none
 * that can be read. A webhook keeps its signing secrets, or gets its first. Throws AppError `invalid` for a URL with `…` in it
 * that is none of the shown ones.
 */
export function toSettings(config: ConfigInput, stored: ChannelSettings | null): ChannelSettings {
  switch (config.kind) {
    case 'webhook': {
      const before = ofKind('webhook', stored)
      const secrets: readonly SigningSecret[] = before?.secrets ?? [{ secret: makeSecret(), expiresAt: null }]
      return {
        kind: 'webhook',
        url: reveal(config.url, before === null ? [] : [before.url], hideSecrets, 'url'),
        secrets,
      }
    }
    case 'slack': {
      const before = ofKind('slack', stored)
      return { kind: 'slack', url: reveal(config.url, before === null ? [] : [before.url], hidePath, 'url') }
    }
    case 'alertmanager': {
      const before = ofKind('alertmanager', stored)
      const urls = config.urls.map((url, place) => reveal(url, before?.urls ?? [], hideSecrets, `urls.${place}`))
      return { kind: 'alertmanager', urls, labels: config.labels ?? before?.labels ?? {} }
    }
    case 'email':
      return { kind: 'email', to: config.to }
  }
}

function ofKind<Kind extends ChannelSettings['kind']>(
  kind: Kind,
  stored: ChannelSettings | null,
): SettingsOf<Kind> | null {
  return stored?.kind === kind ? (stored as SettingsOf<Kind>) : null
}

function reveal(given: string, stored: readonly string[], hide: (url: string) => string, field: string): string {
  const kept = stored.find((url) => hide(url) === given)
  if (kept !== undefined) return kept
  if (!given.includes(HIDDEN)) return given
  throw invalidField(
    `config.${field}`,
    `must be written out: ${HIDDEN} stands for what is not shown, and the rest is not as it was`,
  )
}

/** Scheme, credentials, host and path, query. Taken apart as text: URL would write the rest of it anew. */
const URL_PARTS = /^(https?:\/\/)([^/?#\\]*@)?([^?#]*)(\?[^#]*)?/i

function hideSecrets(url: string): string {
  return url.replace(
    URL_PARTS,
    (_, scheme: string, credentials: string | undefined, rest: string, query: string | undefined) =>
      `${scheme}${credentials === undefined ? '' : `${HIDDEN}@`}${rest}${query === undefined ? '' : `?${HIDDEN}`}`,
  )
}

export function hidePath(url: string): string {
  // Credentials are hidden already, by a character that no URL may have there.
  const { origin } = new URL(url.replace(`${HIDDEN}@`, ''))
  return `${origin}/${HIDDEN}`
}
