/**
 * The kinds of channels. A new kind is a folder with its config and its sender, a line here, its name in CHANNEL_KINDS
 * (domain/channel.ts), and its section in docs/use/channels.md.
 */

import type { Senders } from '../../delivery/outcome.ts'
import { CHANNEL_KINDS, type ChannelKind, type ChannelSettings } from '../../domain/channel.ts'
import { alertmanagerConfig } from './alertmanager/config.ts'
import { createAlertmanagerSender } from './alertmanager/send.ts'
import { appriseConfig } from './apprise/config.ts'
import { createAppriseSender } from './apprise/send.ts'
import { discordConfig } from './discord/config.ts'
import { createDiscordSender } from './discord/send.ts'
import { emailConfig } from './email/config.ts'
import { createEmailSender } from './email/send.ts'
import { googleChatConfig } from './googlechat/config.ts'
import { createGoogleChatSender } from './googlechat/send.ts'
import { defineKind, type Kind, type SenderContext } from './kind.ts'
import { matrixConfig } from './matrix/config.ts'
import { createMatrixSender } from './matrix/send.ts'
import { ntfyConfig } from './ntfy/config.ts'
import { createNtfySender } from './ntfy/send.ts'
import { pagerdutyConfig } from './pagerduty/config.ts'
import { createPagerdutySender } from './pagerduty/send.ts'
import { slackConfig } from './slack/config.ts'
import { createSlackSender } from './slack/send.ts'
import { teamsConfig } from './teams/config.ts'
import { createTeamsSender } from './teams/send.ts'
import { telegramConfig } from './telegram/config.ts'
import { createTelegramSender } from './telegram/send.ts'
import { webhookConfig } from './webhook/config.ts'
import { createWebhookSender } from './webhook/send.ts'

export const KINDS = {
  webhook: defineKind(webhookConfig, createWebhookSender),
  alertmanager: defineKind(alertmanagerConfig, createAlertmanagerSender),
  slack: defineKind(slackConfig, createSlackSender),
  email: defineKind(emailConfig, createEmailSender),
  teams: defineKind(teamsConfig, createTeamsSender),
  discord: defineKind(discordConfig, createDiscordSender),
  googlechat: defineKind(googleChatConfig, createGoogleChatSender),
  pagerduty: defineKind(pagerdutyConfig, createPagerdutySender),
  apprise: defineKind(appriseConfig, createAppriseSender),
  telegram: defineKind(telegramConfig, createTelegramSender),
  ntfy: defineKind(ntfyConfig, createNtfySender),
  matrix: defineKind(matrixConfig, createMatrixSender),
} satisfies Record<ChannelKind, Kind>

/** A sender for each kind. */
export function createSenders(context: SenderContext): Senders {
  return Object.fromEntries(CHANNEL_KINDS.map((kind) => [kind, KINDS[kind].createSender(context)])) as Senders
}

/** The settings of a channel. `signingSecret`: of a kind that signs; undefined: the stored ones, or a new one. */
export function settingsOf(
  kind: ChannelKind,
  config: object,
  stored: ChannelSettings | null,
  signingSecret: string | undefined,
): ChannelSettings {
  const { toSettings, secret } = KINDS[kind].config
  const settings = toSettings(config, stored)
  return signingSecret === undefined ? settings : secret!.give(settings, signingSecret)
}
