/** The pages of the dashboard. A fixed path stands before one with an id that would match it too. */

import type { PageRoute } from './page.ts'
import { channelFormRoutes } from './pages/channels/channel-form.ts'
import { channelsRoutes } from './pages/channels/channels.ts'
import { acknowledgeRoutes } from './pages/checks/acknowledge.ts'
import { checkRoutes } from './pages/checks/check.ts'
import { checkActionRoutes } from './pages/checks/check-actions.ts'
import { checkFormRoutes } from './pages/checks/check-form.ts'
import { checkPingRoutes } from './pages/checks/check-pings.ts'
import { howRoutes } from './pages/checks/how.ts'
import { checksRoutes } from './pages/checks/list.ts'
import { pauseRoutes } from './pages/checks/pause.ts'
import { deliveriesRoutes } from './pages/deliveries.ts'
import { logInRoutes } from './pages/login.ts'
import { serviceRoutes } from './pages/service.ts'
import { settingsRoutes } from './pages/settings/settings.ts'
import { silenceFormRoutes } from './pages/silences/silence-form.ts'
import { silencesRoutes } from './pages/silences/silences.ts'

export const PAGES: readonly PageRoute[] = [
  ...logInRoutes,
  ...checksRoutes,
  ...checkFormRoutes,
  ...howRoutes,
  ...channelFormRoutes,
  ...channelsRoutes,
  ...silenceFormRoutes,
  ...silencesRoutes,
  ...deliveriesRoutes,
  ...settingsRoutes,
  ...serviceRoutes,
  ...checkActionRoutes,
  ...acknowledgeRoutes,
  ...pauseRoutes,
  ...checkPingRoutes,
  // Last: `/checks/{id}` would match other paths of checks.
  ...checkRoutes,
]
