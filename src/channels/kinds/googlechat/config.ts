import { type UrlSettings, urlConfig } from '../url-config.ts'

export type GoogleChatSettings = UrlSettings<'googlechat'>

export const googleChatConfig = urlConfig('googlechat', {
  title: 'Google Chat',
  purpose: 'A card in a space of Google Chat, in a thread for each check.',
  label: 'URL of the webhook',
  meaning: 'From the space, under "Apps & integrations", "Webhooks".',
  example: 'https://chat.googleapis.com/v1/spaces/XXXX/messages?key=XXXX&token=XXXX',
  description: 'Webhook of a space of Google Chat, with its key and its token',
})
