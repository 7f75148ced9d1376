import { type UrlSettings, urlConfig } from '../url-config.ts'

export type SlackSettings = UrlSettings<'slack'>

export const slackConfig = urlConfig('slack', {
  title: 'Slack',
  purpose: 'A message in a Slack channel, or in a service that takes the same messages, such as Mattermost.',
  label: 'URL of the incoming webhook',
  meaning: 'From the settings of your Slack app, under "Incoming Webhooks".',
  example: 'https://hooks.slack.com/services/T000/B000/XXXX',
  description: 'Incoming webhook of Slack, or of a service that takes the same messages',
})
