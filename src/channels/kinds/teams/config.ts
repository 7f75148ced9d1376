import { type UrlSettings, urlConfig } from '../url-config.ts'

export type TeamsSettings = UrlSettings<'teams'>

export const teamsConfig = urlConfig('teams', {
  title: 'Microsoft Teams',
  purpose: 'A card in a channel or a chat of Microsoft Teams, by a workflow.',
  label: 'URL of the workflow',
  meaning: 'From the Workflows app of Teams: the template "Send webhook alerts to a channel" shows it at its end.',
  example:
    'https://XXXX.environment.api.powerplatform.com/powerautomate/automations/direct/workflows/XXXX/triggers/manual/paths/invoke?api-version=1&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=XXXX',
  description: 'URL, with its signature, of a workflow that posts the card of a webhook request in Microsoft Teams',
})
