/** Discord: https://docs.discord.com/developers, "Webhook Resource", "Message Resource", "Rate Limits". */

import { readMarkdown } from '../discord-markdown.ts'
import { demand, Refusal, startHttpService } from './service.ts'

const PATH = '/api/webhooks/1/s3cret'
const UNKNOWN = '{"message":"Unknown Webhook","code":10015}'
/** The only links of ours. */
const OURS = /^https:\/\/heartbeat\.example\.com\/(?:checks(?:\/[\w-]+)?|ack\/[\w.-]+)$/
/** What a person wrote about a check has links that show their own address. */
const ADDRESS = /^<https?:\/\/[^\s<>]+>$/

export const startDiscord = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'discord', url: url + PATH }) as const,
    accept({ path, body }) {
      const { pathname, searchParams } = new URL(path, 'http://discord')
      if (pathname !== PATH) throw new Refusal('Unknown Webhook', { status: 404, text: UNKNOWN })
      demand(searchParams.get('wait') === '1', 'a message that is not saved returns no error')
      const { embeds, allowed_mentions: mentions } = JSON.parse(body)
      demand(Array.isArray(mentions.parse) && mentions.parse.length === 0, 'people would be notified')
      demand(embeds.length === 1, 'embeds: Must be 10 or fewer in length.')
      const [{ title, description, color }] = embeds
      demand(title.trim() !== '' && [...title].length <= 256, 'embeds.0.title: Must be 256 or fewer in length.')
      demand(
        description.trim() !== '' && [...description].length <= 4_096,
        'embeds.0.description: Must be 4096 or fewer in length.',
      )
      demand(Number.isInteger(color) && color >= 0 && color <= 0xffffff, 'embeds.0.color: int value out of range.')
      const [untrusted, about = ''] = description.split('\nAbout this check:\n')
      for (const mark of [title, untrusted].flatMap((text) => readMarkdown(text).marks))
        demand(OURS.test(mark), `untrusted text became mark-up: ${mark}`)
      for (const mark of readMarkdown(about).marks)
        demand(OURS.test(mark) || ADDRESS.test(mark), `a description became mark-up: ${mark}`)
      return { status: 200, text: '{"id":"1"}' }
    },
    tooMany: {
      status: 429,
      headers: { 'content-type': 'application/json', 'retry-after': '65' },
      text: '{"message":"You are being rate limited.","retry_after":64.57,"global":false}',
    },
    tooManyMs: 64_570,
    gone: { status: 404, headers: { 'content-type': 'application/json' }, text: UNKNOWN },
    isGoneAtOnce: true,
  })
