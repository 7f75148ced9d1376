import { z } from 'zod'
import { configOf, hidePath, reveal, webUrl } from '../fields.ts'
import type { KindConfig } from '../kind.ts'

export interface SlackSettings {
  readonly kind: 'slack'
  readonly url: string
}

type SlackConfig = Pick<SlackSettings, 'url'>

export const slackConfig: KindConfig<SlackSettings, SlackConfig, SlackConfig> = {
  title: 'Slack',
  purpose: 'A message in a Slack channel, or in a service that takes the same messages, such as Mattermost or Discord.',
  form: [
    {
      name: 'url',
      label: 'URL of the incoming webhook',
      meaning:
        'From the settings of your Slack app, under "Incoming Webhooks". For Discord, add /slack to the end of its webhook URL. It is a secret: later only its host is shown.',
      as: 'line',
      example: 'https://hooks.slack.com/services/T000/B000/XXXX',
      isSecret: true,
    },
  ],
  input: configOf({
    url: webUrl(
      'Incoming webhook of Slack, or of a service that takes the same messages. It is a secret: responses show its origin and …, and a URL that is sent back as it was shown keeps its value.',
    ),
  }),
  shown: z.object({ url: z.string() }),

  toSettings: ({ url }, stored) => ({
    kind: 'slack',
    url: reveal(url, stored === null ? [] : [stored.url], hidePath, 'url'),
  }),
  show: ({ url }) => ({ url: hidePath(url) }),
  urlsOf: ({ url }) => [{ url, field: 'url' }],
}
