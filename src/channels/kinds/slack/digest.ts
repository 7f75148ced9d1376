/**
 * A digest as a message of Slack's incoming webhooks. Names and reasons are untrusted, as in message.ts: in the blocks they are
 * plain_text, in `text` they are disarmed. `text` has room for fewer checks than the blocks, and counts the others.
 */

import type { Digest } from '../../../domain/digest.ts'
import { composeLines, cutEnd } from '../cut.ts'
import { type CheckLine, type DigestText, describeDigest } from '../digest-text.ts'
import { disarm } from '../disarm.ts'
import type { Links } from '../kind.ts'
import { MARKS } from '../message-text.ts'
import { escapePieces, escapeText, escapeUrl } from './escape.ts'
import { type Block, plain, SLACK_LIMITS, type SlackMessage, verbatim } from './message.ts'

/**
 * UTF-16 units of the escaped text: of a name, and of the whole line of a check. Slack rejects a message whose blocks have more than about 11,000
 * together (`msg_blocks_too_long`; it documents no number): 50 lines have 9,000.
 */
export const LINE_LIMITS = { name: 100, line: 180 } as const

export function renderDigest(digest: Digest, links: Links): SlackMessage {
  const words = describeDigest(digest, links)
  const link = escapeUrl(words.link)
  return { text: renderText(words, link), blocks: renderBlocks(words, link), unfurl_links: false, unfurl_media: false }
}

function renderBlocks({ tone, headline, checks, rest, note }: DigestText, link: string): Block[] {
  const lines = checks.map((check) => renderLine(check, (text) => text))
  const others = [rest(checks.length), note].filter((text) => text !== null)
  return [
    { type: 'header', text: plain(`${MARKS[tone]} ${headline}`) },
    ...fill(lines, SLACK_LIMITS.section).map((text): Block => ({ type: 'section', text: plain(text) })),
    ...(others.length === 0 ? [] : [{ type: 'section', text: plain(others.join('\n')) } as const]),
    { type: 'context', elements: [verbatim(`<${link}|All checks>`)] },
  ]
}

function renderText({ tone, headline, checks, rest, note }: DigestText, link: string): string {
  const compose = (lines: readonly string[]) =>
    [`${MARKS[tone]} ${headline}`, ...lines, rest(lines.length), note, `All checks: <${link}>`]
      .filter((line) => line !== null)
      .join('\n')
  const lines = checks.map((check) => renderLine(check, disarm))
  return composeLines(lines, SLACK_LIMITS.text, compose)
}

/** A line that is too long loses the end of the name and the end of the reason, never the change. */
function renderLine({ name, change, reason }: CheckLine, protect: (text: string) => string): string {
  const start = `${cutEnd(escapePieces(protect(name)), LINE_LIMITS.name)}${escapeText(change)}: `
  return start + cutEnd(escapePieces(protect(reason)), LINE_LIMITS.line - start.length)
}

/** Joins lines to as few texts as possible. */
function fill(lines: readonly string[], limit: number): string[] {
  const texts: string[] = []
  for (const line of lines) {
    const last = texts.at(-1)
    if (last !== undefined && last.length + 1 + line.length <= limit) texts[texts.length - 1] = `${last}\n${line}`
    else texts.push(line)
  }
  return texts
}
