import { type UrlSettings, urlConfig } from '../url-config.ts'

export type DiscordSettings = UrlSettings<'discord'>

export const discordConfig = urlConfig('discord', {
  title: 'Discord',
  purpose: 'A message in a channel of Discord, coloured by what has happened.',
  label: 'URL of the webhook',
  meaning: 'From the settings of the channel, under "Integrations", "Webhooks".',
  example: 'https://discord.com/api/webhooks/0000/XXXX',
  description: 'Webhook of a channel of Discord; of a forum with `?thread_id=` and the id of a post',
  extra: {
    words: 'without /slack at the end: remove it, or use the kind slack',
    holds: (url) => !/\/slack\/?$/i.test(new URL(url).pathname),
    without: '',
  },
})
