/** A fake of each kind's service. test/db/delivery/kinds.test.ts and test/db/delivery/kinds-faults.test.ts meet every kind. */

import type { ChannelKind } from '../../../src/domain/channel.ts'
import { startAlertmanager } from './alertmanager.ts'
import { startApprise } from './apprise.ts'
import { startDiscord } from './discord.ts'
import { startEmail } from './email.ts'
import { startGoogleChat } from './googlechat.ts'
import { startMatrix } from './matrix.ts'
import { startNtfy } from './ntfy.ts'
import { startPagerduty } from './pagerduty.ts'
import type { Service } from './service.ts'
import { startSlack } from './slack.ts'
import { startTeams } from './teams.ts'
import { startTelegram } from './telegram.ts'
import { startWebhook } from './webhook.ts'

export const SERVICES: Readonly<Record<ChannelKind, () => Promise<Service & { readonly smtpPort?: number }>>> = {
  webhook: startWebhook,
  alertmanager: startAlertmanager,
  slack: startSlack,
  email: startEmail,
  teams: startTeams,
  discord: startDiscord,
  googlechat: startGoogleChat,
  pagerduty: startPagerduty,
  apprise: startApprise,
  telegram: startTelegram,
  ntfy: startNtfy,
  matrix: startMatrix,
}
