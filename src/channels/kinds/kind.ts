/** What a kind of channel consists of: its config, and how it sends. */

import type { z } from 'zod'
import type { HttpClient } from '../../delivery/http.ts'
import type { Sender } from '../../delivery/outcome.ts'
import type { ChannelSettings } from '../../domain/channel.ts'
import type { Incident, Instant } from '../../domain/check.ts'
import type { Event } from '../../domain/event.ts'
import { siteUrlOf } from '../../domain/site.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Database } from '../../store/postgres/database.ts'

/** A field of `config` in a form for people. */
export interface ConfigField {
  /** Its name in `config`. */
  readonly name: string
  readonly label: string
  readonly meaning: string
  /**
   * Absent: text. `number`: an integer. `lines`: a list, an item on each line. `pairs`: an object, `name=value` on each
   * line.
   */
  readonly as?: 'number' | 'lines' | 'pairs'
  readonly example: string
  /** Its value can be a credential: a browser must not store it. */
  readonly isSecret?: true
  /** An empty line leaves it out. */
  readonly isOptional?: true
}

/** The config of a channel is what the API takes (`Input`) and shows (`Shown`); the settings are what is stored. */
export interface KindConfig<Settings extends ChannelSettings, Input extends object, Shown extends object> {
  /** Its name for people. */
  readonly title: string
  /** What it is for: one sentence. */
  readonly purpose: string
  /** Every field of `config`, in the order of a form. */
  readonly form: readonly ConfigField[]
  /** Reads the `config` of a request. Its faults name fields of `config`. */
  readonly input: z.ZodType<Input>
  /** Describes the `config` of a response. */
  readonly shown: z.ZodType<Shown>
  /**
   * The settings for a config. `stored`: the settings of the channel until now; null for a new channel, and when they cannot be
   * read. Throws AppError `invalid_request` for a URL that contains `…` and is not one that was shown.
   */
  toSettings(config: Input, stored: Settings | null): Settings
  /** The config without its secrets. `toSettings(show(settings), settings)` equals `settings`. */
  show(settings: Settings): Shown
  /** Hides more, for callers that may not change the channel. Default: they see the same. */
  showToReader?(config: Shown): Shown
  /** Where it sends by HTTP, and the field of `config` with the URL. */
  urlsOf(settings: Settings): readonly { readonly url: string; readonly field: string }[]
  /**
   * The field of `config` that a HeartbeatChannel takes from a Secret. `orField`: exactly one of this field, written
   * out, and a Secret; default: the field is never written out. Absent: the kind has no secret.
   */
  readonly inSecret?: { readonly field: string; readonly orField?: string }
  /** It sends through the mail server of SMTP_URL. */
  readonly needsSmtp?: true
  /** Of a kind that signs with a secret: we make it and show it once, or a HeartbeatChannel gives one. */
  readonly secret?: {
    /** What a secret looks like, in words. */
    readonly form: string
    isOfForm(text: string): boolean
    /** With this secret alone. */
    give(settings: Settings, secret: string): Settings
    newest(settings: Settings): string
    rotate(settings: Settings, now: Instant): Settings
    /** Another text after each rotation. */
    rotationOf(settings: Settings): string
  }
}

/** What senders work with. */
export interface SenderContext {
  readonly client: HttpClient
  /** The database's time. */
  readonly clock: Pick<Clock, 'now'>
  readonly links: Links
  readonly database: Database
  readonly smtp: SmtpOptions
}

export interface SmtpOptions {
  /** SMTP_URL: `smtp://user:password@host:587` or `smtps://...:465`. */
  readonly url: string | undefined
  /** SMTP_FROM: `Name <address>`, or an address alone. */
  readonly from: string
  /** SMTP_TLS: TLS is demanded, with a valid certificate, also without a password. */
  readonly isTlsRequired?: boolean
  /** SMTP_NAME: how we introduce ourselves to the server (EHLO). Default: the name of this machine if it has a dot, else an address. */
  readonly name?: string | undefined
  /** A certificate authority in PEM, instead of Node's. */
  readonly ca?: string
}

/** A kind whose types are erased. The outbox gives a sender channels of its own kind only. */
export interface Kind {
  readonly config: KindConfig<ChannelSettings, object, object>
  createSender(context: SenderContext): Sender
}

export function defineKind<Settings extends ChannelSettings, Input extends object, Shown extends object>(
  config: KindConfig<Settings, Input, Shown>,
  createSender: (context: SenderContext) => Sender<Settings>,
): Kind {
  return { config, createSender: createSender as Kind['createSender'] } as Kind
}

export interface Links {
  /** For programs, with a credential: `{base_url}/checks/{id}`. Its history is at `/pings` and `/flips` below it. */
  check(checkId: string): string
  /** For people: the page of the check, at the origin of the base URL. Null while the dashboard is off. */
  dashboard(checkId: string): string | null
  /** For people: the list of the checks; in the API while the dashboard is off. */
  checks(): string
  /** For people, with a credential: the page that acknowledges the incident. Null where none can be made. */
  acknowledge(incident: Incident): string | null
}

export interface Place {
  /** Before the address: `Check: https://...`. */
  readonly label: string
  /** On a button. */
  readonly action: string
  readonly url: string
}

/** Where a message leads: to its check, and to the acknowledgement of what it is about. None for a test. */
export function placesOf(links: Links, event: Event): readonly Place[] {
  if (event.type === 'channel.test') return []
  const acknowledge = linkToAcknowledge(links, event)
  return [
    { label: 'Check', action: 'Open the check', url: linkForPeople(links, event.check.id) },
    ...(acknowledge === null ? [] : [{ label: 'I have it', action: 'I have it', url: acknowledge }]),
  ]
}

/** Where the reader of a message acknowledges what it is about. Null: it is about no open incident. */
export function linkToAcknowledge(links: Links, event: Event): string | null {
  if (event.type !== 'check.down' || event.facts.incident_at === undefined) return null
  return links.acknowledge({ checkId: event.check.id, since: Date.parse(event.facts.incident_at) })
}

/** Where a person finds the check. */
export function linkForPeople(links: Links, checkId: string): string {
  return links.dashboard(checkId) ?? links.check(checkId)
}

/** Below the site. */
export const ACKNOWLEDGE_PREFIX = '/ack/'

/**
 * `baseUrl` returns BASE_URL, with or without a slash at its end. It is called for each link: the port can be unknown
 * before the start. `sign`: makes the token of an incident; null: no message leads to its acknowledgement.
 */
export function createLinks(
  baseUrl: () => string,
  isDashboardOn = false,
  sign: ((incident: Incident) => string) | null = null,
): Links {
  const api = () => baseUrl().replace(/\/+$/, '')
  const site = (path: string) => new URL(siteUrlOf(baseUrl()) + path).href
  return {
    check: (checkId) => `${api()}/checks/${checkId}`,
    dashboard: (checkId) => (isDashboardOn ? site(`/checks/${checkId}`) : null),
    acknowledge: (incident) => (sign === null ? null : site(`${ACKNOWLEDGE_PREFIX}${sign(incident)}`)),
    checks: () => (isDashboardOn ? site('/checks') : `${api()}/checks`),
  }
}
