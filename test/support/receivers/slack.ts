/** Slack: https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks, and the reference of its blocks. */

import { demand, startHttpService } from './service.ts'

const PATH = '/services/T0/B0/s3cret'

export const startSlack = () =>
  startHttpService({
    settingsAt: (url) => ({ kind: 'slack', url: url + PATH }) as const,
    accept({ path, body }) {
      demand(path === PATH, 'no_service')
      const { text, blocks } = JSON.parse(body)
      demand(typeof text === 'string' && text !== '', 'no_text')
      demand(text.length <= 40_000, 'msg_too_long')
      demand(blocks.length <= 50, 'invalid_blocks')
      for (const { type, text, elements } of blocks)
        for (const each of elements ?? [text]) {
          demand(each.text.length > 0 && each.text.length <= (type === 'header' ? 150 : 3_000), 'invalid_blocks')
        }
      return { status: 200, text: 'ok' }
    },
    tooMany: { status: 429, headers: { 'retry-after': '30' }, text: 'rate_limited' },
    tooManyMs: 30_000,
    gone: { status: 404, text: 'no_service' },
    isGoneAtOnce: true,
  })
