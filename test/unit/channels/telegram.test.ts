import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { TelegramSettings } from '../../../src/channels/kinds/telegram/config.ts'
import { renderDigest, renderMessage } from '../../../src/channels/kinds/telegram/message.ts'
import { createTelegramSender } from '../../../src/channels/kinds/telegram/send.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { findForeignLink, readMarkup } from '../../support/markup.ts'
import { anUp, crowd, everything, inside, LINK, links, sendTo } from './sending.ts'

const TOKEN = '123456789:AAs3cretExampleExampleExampleExampl'
const LIMIT = 4_096
const settings: TelegramSettings = { kind: 'telegram', token: TOKEN, chat_id: '@ops_room' }
const read = (html: string) => readMarkup(html, { b: [], pre: [] })

describe('a message to Telegram', () => {
  it('contains all that is known, and a button to the check', () => {
    expect(renderMessage(everything, links, { ...settings, chat_id: -100123, thread_id: 7 })).toEqual({
      chat_id: -100123,
      message_thread_id: 7,
      text: [
        '<b>🔴 Shop &lt;backup&gt; is down</b>',
        'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
        'Last success: 2026-11-20 03:00:00 UTC',
        'Usual duration: 12 min 34 s',
        'HeartbeatCheck shop/backup in cluster default, project shop',
        '',
        'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):',
        '<pre>pg_dump: &quot;shop&quot; &amp; &lt;all&gt;\ndisk full</pre>',
        '',
        'About this check:',
        'Runbook: https://wiki.example.com/backup?a&amp;b\nCall @\u200bann',
      ].join('\n'),
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
      reply_markup: { inline_keyboard: [[{ text: 'Open the check', url: LINK }]] },
    })
  })

  it('of a recovery', () => {
    expect(renderMessage(anUp, links, settings).text).toBe(
      [
        '<b>🟢 Nightly backup is up again after 2 h 5 min</b>',
        'The job reported a success at 2026-11-21 03:00:00 UTC',
        '2 runs were missed',
        'Project shop',
      ].join('\n'),
    )
  })

  it('of a test has nothing about a check', () => {
    expect(renderMessage(aTestEvent, links, settings)).toEqual({
      chat_id: '@ops_room',
      text: '<b>🔵 A test of this channel</b>\nA test was requested at 2026-11-21 03:00:00 UTC: the channel works',
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
    })
  })

  it('has the address as text where Telegram would refuse a button to it', () => {
    const { text, reply_markup } = renderMessage(aFlipEvent(), inside, settings)
    expect(reply_markup).toBeUndefined()
    expect(text).toMatch(
      /Project shop\n\nCheck: http:\/\/heartbeat:8080\/checks\/0197a000-0000-7000-8000-000000000002$/,
    )
    const byAddress = { ...inside, dashboard: () => 'http://[fd00::1]:8080/' }
    expect(renderMessage(aFlipEvent(), byAddress, settings).reply_markup).toBeDefined()
  })
})

describe('a digest to Telegram', () => {
  it('names each check, and has a button to all', () => {
    const { text, reply_markup } = renderDigest(crowd, links, settings)
    const lines = text.split('\n')
    expect(lines[0]).toBe('<b>🔴 21 checks: 20 down, 1 up again</b>')
    expect(lines[1]).toBe('Job 1 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC')
    expect(lines[21]).toBe('Job 21 is up again after 1 min: The job reported a success at 2026-11-21 03:00:00 UTC')
    expect(lines).toHaveLength(22)
    expect(reply_markup).toEqual({
      inline_keyboard: [[{ text: 'All checks', url: 'https://heartbeat.example.com/checks' }]],
    })
  })

  it('counts those that it does not name, and links in text where it must', () => {
    const { text } = renderDigest(aDigest(manyFlipEvents(57)), inside, settings)
    expect(text).toMatch(/\nAnd 7 more: 7 down\n\nAll checks: http:\/\/heartbeat:8080\/checks$/)
  })
})

describe("Telegram's limit", () => {
  const failedWith = (body: string, description?: string) =>
    renderMessage(
      aFlipEvent({ lastPing: aLastPing({ body }), check: description === undefined ? {} : { description } }),
      links,
      settings,
    ).text
  const room = LIMIT - read(failedWith('x')).text.length + 1

  it('is of the text without mark-up', () => {
    const whole = failedWith('&'.repeat(room))
    expect(whole).toContain(`<pre>${'&amp;'.repeat(room)}</pre>`)
    expect(read(whole).text).toHaveLength(LIMIT)
    const cut = failedWith(`${'&'.repeat(room)}END`)
    expect(cut).toContain(`<pre>…${'&amp;'.repeat(room - 4)}END</pre>`)
    expect(read(cut).text).toHaveLength(LIMIT)
    const event = aFlipEvent({ lastPing: aLastPing({ body: 'x'.repeat(4_096) }) })
    expect(renderMessage(event, inside, settings).text.replace(/<[^>]+>/g, '')).toHaveLength(LIMIT)
  })

  it('holds, and the message is well-formed and mentions nobody, whatever is in it', () => {
    const unit = fc.constantFrom(
      '&',
      '<',
      '>',
      '"',
      '</pre>',
      '&lt;',
      'x',
      '\n',
      '🔥',
      'é',
      '@',
      '/',
      '.',
      '#',
      'https://',
    )
    const text = (maxLength: number) => fc.string({ unit, maxLength })
    fc.assert(
      fc.property(
        text(100),
        text(1_024),
        text(4_096),
        text(4_096),
        fc.boolean(),
        (name, detail, body, description, isIn) => {
          const event = aFlipEvent({
            facts: { reason: 'failed', detail: [...detail].slice(0, 1_024).join('') },
            check: { name: [...name].slice(0, 100).join(''), description },
            lastPing: aLastPing({ body: body.slice(-4_096) }),
          })
          const crowded = aDigest(manyFlipEvents(60, () => ({ facts: event.facts, check: { name: event.check.name } })))
          const at = isIn ? links : inside
          for (const message of [renderMessage(event, at, settings), renderDigest(crowded, at, settings)]) {
            const { text, elements, prose } = read(message.text)
            expect(text.length).toBeLessThanOrEqual(LIMIT)
            expect(Buffer.byteLength(message.text)).toBeLessThanOrEqual(35_000)
            expect(text.isWellFormed()).toBe(true)
            expect(elements.filter(({ tag }) => tag === 'b').map(({ text }) => text)).toEqual([prose.split('\n')[0]])
            expect(
              findForeignLink(prose.replace(/\n\n(?:Check|All checks): http:\/\/heartbeat:8080\S+$/, '')),
            ).toBeNull()
          }
        },
      ),
      { numRuns: 40, endOnFailure: true },
    )
  })
})

describe('a request to Telegram', () => {
  it('has the token in its path', async () => {
    const { request, digestRequest } = await sendTo(createTelegramSender, settings)
    expect(request).toMatchObject({ method: 'POST', url: `https://api.telegram.org/bot${TOKEN}/sendMessage` })
    expect(request.body).toBe(JSON.stringify(renderMessage(everything, links, settings)))
    expect(digestRequest.body).toBe(JSON.stringify(renderDigest(crowd, links, settings)))
    const own = await sendTo(createTelegramSender, { ...settings, url: 'https://telegram.example.com/api/' })
    expect(own.request.url).toBe(`https://telegram.example.com/api/bot${TOKEN}/sendMessage`)
  })

  const respond = async (status: number, description: string, parameters?: object) => {
    const json = { ok: false, error_code: status, description, parameters }
    return (await sendTo(createTelegramSender, settings, { status, json })).outcome
  }

  it('waits as long as the response says', async () => {
    expect(await respond(429, 'Too Many Requests: retry after 35', { retry_after: 35 })).toMatchObject({
      kind: 'retry',
      retryAfterMs: 35_000,
    })
    expect(await respond(429, 'Too Many Requests')).not.toHaveProperty('retryAfterMs')
    expect(await respond(502, 'Bad Gateway')).toMatchObject({ kind: 'retry' })
  })

  it.each([
    [400, 'Bad Request: chat not found', 'check chat_id'],
    [400, 'Bad Request: message thread not found', 'the topic of thread_id is closed or does not exist'],
    [400, 'Bad Request: TOPIC_CLOSED', 'the topic of thread_id is closed or does not exist'],
    [400, 'Bad Request: not enough rights to send text messages to the chat', 'allow the bot to send messages there'],
    [401, 'Unauthorized', 'the token is not valid or was revoked: give the one that @BotFather shows'],
    [404, 'Not Found', 'the token is not valid or was revoked: give the one that @BotFather shows'],
    [403, 'Forbidden: bot was blocked by the user', 'a person who has blocked the bot must unblock it'],
    [403, 'Forbidden: bot was kicked from the group chat', 'add the bot to the chat again'],
  ])('gives up at once after %i %s', async (status, description, what) => {
    const outcome = await respond(status, description)
    expect(outcome).toEqual({ kind: 'rejected', status, error: expect.stringContaining(what) })
    expect(outcome).toMatchObject({ error: expect.stringContaining(`api.telegram.org responded ${status}: `) })
  })

  it('says the new id of a group', async () => {
    const parameters = { migrate_to_chat_id: -1001234567890 }
    const outcome = await respond(400, 'Bad Request: group chat was upgraded to a supergroup chat', parameters)
    expect(outcome).toEqual({
      kind: 'rejected',
      status: 400,
      error: expect.stringMatching(
        /; the group has become a supergroup with another id: set chat_id to -1001234567890$/,
      ),
    })
  })

  it.each(["Bad Request: can't parse entities: unclosed tag", 'Bad Request: message is too long'])(
    'is refused as a message: %s',
    async (description) => {
      expect(await respond(400, description)).toMatchObject({ kind: 'rejected', isOfMessage: true })
    },
  )

  it('that a proxy refuses is tried again', async () => {
    const { outcome } = await sendTo(createTelegramSender, settings, { status: 404, text: 'no route' })
    expect(outcome).toMatchObject({ kind: 'retry', isRefusal: true })
  })

  it('never shows the token', async () => {
    for (const text of [`bot${TOKEN}`, `the token ${TOKEN} is wrong`, JSON.stringify({ description: TOKEN })])
      for (const status of [400, 403, 500])
        expect(JSON.stringify((await sendTo(createTelegramSender, settings, { status, text })).outcome)).not.toMatch(
          /s3cret/,
        )
  })
})
