/** Messages to Discord: what they say, what fits, and that untrusted text stays text. Clients are played by readMarkdown. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { discordConfig } from '../../../src/channels/kinds/discord/config.ts'
import { DISCORD_LIMITS, renderDigest, renderMessage } from '../../../src/channels/kinds/discord/message.ts'
import { createDiscordSender } from '../../../src/channels/kinds/discord/send.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import type { Event } from '../../../src/domain/event.ts'
import { readMarkdown } from '../../support/discord-markdown.ts'
import { aDigest, aFlipEvent, aLastPing, aTestEvent, manyFlipEvents } from '../../support/events.ts'
import { createFakeHttpClient } from '../../support/fake-http-client.ts'
import { createManualClock } from '../../support/manual-clock.ts'

const links = createLinks(() => 'https://heartbeat.example.com/api/v1', true)
const LINK = 'https://heartbeat.example.com/checks/0197a000-0000-7000-8000-000000000002'
const ALL = 'https://heartbeat.example.com/checks'
const FACTS = { last_success_at: '2026-11-20T03:00:00.000Z', usual_ms: 754_000 }

const embedOf = (event: Event) => renderMessage(event, links).embeds[0]
const failedWith = (body: string, name = 'Nightly backup') =>
  aFlipEvent({ facts: { reason: 'failed' }, check: { name }, lastPing: aLastPing({ body }) })

describe('a message to Discord', () => {
  it('has all that is known of a check that is down', () => {
    const kubernetes = { cluster: 'default', namespace: 'shop', name: 'backup' }
    const event = aFlipEvent({
      facts: { reason: 'failed', ...FACTS },
      check: { kubernetes, description: 'Runbook: https://wiki.example.com/backup' },
      lastPing: aLastPing({ body: 'dumping shop\ndisk full' }),
    })
    expect(renderMessage(event, links)).toEqual({
      embeds: [
        {
          title: 'Nightly backup is down',
          description: [
            'The job reported a failure with exit code 3 at 2026-11-21 03:00:00 UTC',
            'Last success: 2026-11-20 03:00:00 UTC',
            'Usual duration: 12 min 34 s',
            'HeartbeatCheck shop/backup in cluster default, project shop',
            'Output of the last ping (fail with exit code 3, 2026-11-21 02:59:58 UTC):',
            '```\ndumping shop\ndisk full\n```',
            'About this check:',
            'Runbook: <https://wiki.example.com/backup>',
            `Check: ${LINK}`,
          ].join('\n'),
          color: 0xcf222e,
        },
      ],
      allowed_mentions: { parse: [] },
    })
  })

  it('has the runs that were missed of one that is up again', () => {
    const facts = { reason: 'recovered', status: 'up', down_for_seconds: 7_500, missed_runs: 2 } as const
    expect(renderMessage(aFlipEvent({ type: 'check.up', facts }), links)).toEqual({
      embeds: [
        {
          title: 'Nightly backup is up again after 2 h 5 min',
          description: [
            'The job reported a success at 2026-11-21 03:00:00 UTC',
            '2 runs were missed',
            'Project shop',
            `Check: ${LINK}`,
          ].join('\n'),
          color: 0x1a7f37,
        },
      ],
      allowed_mentions: { parse: [] },
    })
  })

  it('has nothing of a check for a test', () => {
    const description = 'A test was requested at 2026-11-21 03:00:00 UTC: the channel works'
    expect(embedOf(aTestEvent)).toEqual({ title: 'A test of this channel', description, color: 0x57606a })
  })

  it('is amber for a warning', () => {
    expect(embedOf(aFlipEvent({ type: 'check.warned' })).color).toBe(0xd29922)
  })
})

describe('a digest to Discord', () => {
  it('has a line for each check, and the number of the others', () => {
    const digest = aDigest(manyFlipEvents(2), { counts: [{ type: 'check.down', checks: 5 }], events: 6 })
    expect(renderDigest(digest, links)).toEqual({
      embeds: [
        {
          title: '5 checks: 5 down',
          description: [
            'Job 1 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
            'Job 2 is down: No ping came in time: it was due at 2026-11-21 03:00:00 UTC',
            'And 3 more: 3 down',
            '6 events in all: of each check its newest counts',
            `All checks: ${ALL}`,
          ].join('\n'),
          color: 0xcf222e,
        },
      ],
      allowed_mentions: { parse: [] },
    })
  })

  it('counts the checks whose lines do not fit', () => {
    const digest = aDigest(manyFlipEvents(50, () => ({ check: { name: '_'.repeat(100) } })))
    const { description } = renderDigest(digest, links).embeds[0]
    expect(description.length).toBeLessThanOrEqual(DISCORD_LIMITS.description)
    const lines = description.split('\n')
    const shown = lines.length - 2
    expect(shown).toBeGreaterThan(10)
    expect(lines.slice(-2)).toEqual([`And ${50 - shown} more: ${50 - shown} down`, `All checks: ${ALL}`])
    // One more would not fit.
    expect(description.length + lines[0]!.length).toBeGreaterThan(DISCORD_LIMITS.description)
  })

  it('makes no mark-up of a name at the beginning of a line', () => {
    for (const name of ['- a', '+ a', '1. a', '# a', '-# a', '> a', '>>> a', '* a']) {
      const { description } = renderDigest(aDigest(manyFlipEvents(2, () => ({ check: { name } }))), links).embeds[0]
      const { text, marks } = readMarkdown(description)
      expect(marks).toEqual([ALL])
      expect(text).toContain(`\n${name} is down: `)
    }
  })
})

/** The marks of a message without the addresses of its description, which a person wrote, and which are links of their own words. */
function foreignMarks(description: string): string[] {
  const [untrusted, about = ''] = description.split('\nAbout this check:\n')
  const isAddress = (mark: string) => /^<https?:\/\/[^\s<>]+>$/.test(mark)
  return [...readMarkdown(untrusted!).marks, ...readMarkdown(about).marks.filter((mark) => !isAddress(mark))]
}

const NASTY = [
  '@everyone @here',
  '<@123456> <@!1> <@&2> <#3> </airhorn:4> <id:guide>',
  '<:party:5> <a:party:6> :fire: :100: a:b:c 12:30:fire: 12:100:34',
  '<t:1618953630:R> <+15551234567> <a@b.example>',
  '[Open the check](https://evil.example.com)',
  'https://evil.example.com/x <https://evil.example.com> steam://run discord://x http://a',
  '**bold** *it* _it_ __under__ ~~strike~~ ||spoiler|| `code` ``x`` ```fence``` ````',
  '***a***b _ * ~ | \\ \\* \\\\_x_ \\',
  '# head',
  '- item',
  '  1. item',
  '-# small',
  '> quote',
  '¯\\_(ツ)_/¯ 👩‍👩‍👧‍👦🇩🇪 e\u0301 <b>&amp; \'q\' "q"',
]

describe('untrusted text', () => {
  it.each(NASTY)('stays text in a title, in prose and in code: %s', (nasty) => {
    const event = aFlipEvent({
      facts: { reason: 'failed', detail: nasty },
      check: {
        name: nasty,
        description: `x\n${nasty}`,
        kubernetes: { cluster: nasty, namespace: 'shop', name: 'backup' },
      },
      lastPing: aLastPing({ body: `y\n${nasty}` }),
    })
    const { title, description } = embedOf(event)
    expect(readMarkdown(title)).toEqual({ text: `${nasty.trim()} is down`, marks: [] })
    expect(foreignMarks(description)).toEqual([LINK])
    const { text } = readMarkdown(description)
    expect(text).toContain(`UTC: ${nasty.trim()}\n`)
    expect(text).toContain(`in cluster ${nasty}, project`)
    expect(text.replaceAll('\u200b', '')).toContain(`\nx\n${nasty}\n`)
    expect(text.replaceAll('\u200b', '')).toContain(`\ny\n${nasty}\n`)
  })

  it('stays text, whatever it contains', () => {
    const unit = fc.constantFrom(...'\\*_~|`<>[]()#@:-+.1a \n/!&🔥', 'https://', 'everyone', '```', '\u200b')
    const anyText = fc.string({ unit, maxLength: 120 })
    fc.assert(
      fc.property(anyText, anyText, anyText, (name, detail, body) => {
        const event = aFlipEvent({
          facts: { reason: 'failed', detail },
          check: { name, description: body },
          lastPing: aLastPing({ body }),
        })
        const { title, description } = embedOf(event)
        expect(readMarkdown(title).marks).toEqual([])
        expect(foreignMarks(description)).toEqual([LINK])
      }),
      { numRuns: 1_000 },
    )
  })
})

describe("a text at Discord's limits", () => {
  it('has those of the documentation', () => {
    expect(DISCORD_LIMITS).toEqual({ title: 256, description: 4_096 })
  })

  it('loses the end of a name, never the change or half an escape', () => {
    const ending = ' is down'
    const fitting = '_'.repeat((DISCORD_LIMITS.title - ending.length) / 2)
    expect(embedOf(failedWith('', fitting)).title).toBe(fitting.replaceAll('_', '\\_') + ending)
    expect(embedOf(failedWith('', `${fitting}_`)).title).toBe(`${'\\_'.repeat(fitting.length - 1)}…${ending}`)
    expect(embedOf(failedWith('', '🔥'.repeat(200))).title).toBe(`${'🔥'.repeat(123)}…${ending}`)
  })

  const room = DISCORD_LIMITS.description - embedOf(failedWith('x')).description.length + 1

  it('keeps an output that just fits', () => {
    const { description } = embedOf(failedWith('x'.repeat(room)))
    expect(description).toHaveLength(DISCORD_LIMITS.description)
    expect(description).toContain(`\n${'x'.repeat(room)}\n`)
  })

  it('loses the beginning of a longer one, and nothing else', () => {
    const { description } = embedOf(failedWith(`${'x'.repeat(room)}END`))
    expect(description).toHaveLength(DISCORD_LIMITS.description)
    expect(description).toContain(`\n…${'x'.repeat(room - 4)}END\n`)
    expect(description).toMatch(/^The job reported[\s\S]*Check: https:\S+$/)
  })

  it('stays within them, whatever it contains', () => {
    const unit = fc.constantFrom('*', '`', ':', 'x', '\n', '🔥', '\u200b', 'é')
    const anyText = fc.string({ unit, maxLength: 4_096 })
    fc.assert(
      fc.property(anyText, anyText, anyText, (name, detail, body) => {
        const event = aFlipEvent({
          facts: { reason: 'failed', detail: detail.slice(0, 1_024), ...FACTS },
          check: { name: [...name].slice(0, 100).join(''), description: body },
          lastPing: aLastPing({ body }),
        })
        const { title, description } = embedOf(event)
        expect(title.length).toBeLessThanOrEqual(DISCORD_LIMITS.title)
        expect(description.length).toBeLessThanOrEqual(DISCORD_LIMITS.description)
        for (const text of [title, description]) expect(text.isWellFormed()).toBe(true)
        expect(description).toMatch(/Check: https:\S+$/)
      }),
      { numRuns: 200 },
    )
  })
})

describe('the URL', () => {
  const fault = 'without /slack at the end: remove it, or use the kind slack'
  const faultOf = (url: string) => discordConfig.input.safeParse({ url }).error?.issues[0]?.message

  it.each([
    'https://discord.com/api/webhooks/1/x',
    'https://discord.com/api/webhooks/1/x?thread_id=2',
    'https://discord.com/api/webhooks/1/slackx',
    'https://discord.com/…',
  ])('may be %s', (url) => {
    expect(faultOf(url)).toBeUndefined()
  })

  it.each([
    'https://discord.com/api/webhooks/1/x/slack',
    'https://discord.com/api/webhooks/1/x/Slack/',
    'https://discord.com/api/webhooks/1/x/slack?thread_id=2',
  ])('may not be %s', (url) => {
    expect(faultOf(url)).toContain(fault)
  })

  it('may not be another text', () => {
    expect(faultOf('discord.com/api/webhooks/1/x')).toContain('must be an http or https URL')
  })
})

const channel = (url: string) => ({
  id: '0197a000-0000-7000-8000-000000000005',
  name: 'Team chat',
  isTrusted: false,
  settings: { kind: 'discord', url } as const,
})
const send = (client: ReturnType<typeof createFakeHttpClient>, url = 'https://discord.com/api/webhooks/1/s3cret') =>
  createDiscordSender({ client, clock: createManualClock(), links })(
    { channel: channel(url), event: aFlipEvent(), checkKey: 1 },
    new AbortController().signal,
  )

it('is posted as JSON, and the response says whether it is saved', async () => {
  const client = createFakeHttpClient()
  await send(client)
  await send(client, 'https://discord.com/api/webhooks/1/s3cret?thread_id=7&wait=false')
  const request = {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(renderMessage(aFlipEvent(), links)),
    isTrusted: false,
  }
  expect(client.requests).toEqual([
    { ...request, url: 'https://discord.com/api/webhooks/1/s3cret?wait=1' },
    { ...request, url: 'https://discord.com/api/webhooks/1/s3cret?thread_id=7&wait=1' },
  ])
})

describe('a response of Discord', () => {
  const judge = (status: number, body: object | string, headers: Record<string, string> = {}) =>
    send(createFakeHttpClient({ status, headers, text: typeof body === 'string' ? body : JSON.stringify(body) }))

  it.each([
    [{ message: 'You are being rate limited.', retry_after: 64.571, global: false }, {}, 64_571],
    [{ message: 'You are being rate limited.', retry_after: 0.3, global: true }, { 'retry-after': '1' }, 300],
    ['error code: 1015', { 'retry-after': '600' }, 600_000],
  ])('says how long it gets too many: %j', async (body, headers, retryAfterMs) => {
    expect(await judge(429, body, headers)).toMatchObject({ kind: 'retry', status: 429, retryAfterMs })
  })

  it('may not say how long', async () => {
    expect(await judge(429, { retry_after: '5' })).not.toHaveProperty('retryAfterMs')
  })

  it.each([
    [404, 10003, 'its channel or post is deleted'],
    [404, 10015, 'the webhook is deleted in Discord: make a new one, and change the URL of this channel'],
    [401, 50027, 'the token in the URL is wrong: copy the URL of the webhook again'],
    [400, 220001, 'the webhook is of a forum: add ?thread_id= and the id of a post to the URL'],
  ])('is final: %d with the code %d', async (status, code, advice) => {
    const outcome = await judge(status, { message: 'No', code })
    expect(outcome).toEqual({ kind: 'rejected', status, error: expect.stringContaining(advice) })
    expect(outcome).not.toMatchObject({ error: expect.stringContaining('s3cret') })
  })

  it('is of the message for a text that it refuses', async () => {
    expect(await judge(400, { message: 'Invalid Form Body', code: 50035 })).toMatchObject({ isOfMessage: true })
  })

  it('without a code is judged by its status', async () => {
    expect(await judge(404, 'not found')).toMatchObject({ kind: 'retry', isRefusal: true })
    expect(await judge(200, { id: '1', code: 10015 })).toEqual({ kind: 'delivered', status: 200 })
  })
})
