/** The mail of a digest, as plain text and as HTML. Both contain the same. It begins no thread: its checks have theirs. */

import { html } from 'hono/html'
import type { Digest } from '../../../domain/digest.ts'
import { type CheckLine, type DigestText, describeDigest } from '../digest-text.ts'
import type { Links } from '../kind.ts'
import { type Envelope, type Mail, renderFooter, renderHead } from './mail.ts'

export function renderDigestMail(digest: Digest, links: Links, envelope: Envelope): Mail {
  const words = describeDigest(digest, links)
  const footer = renderFooter(envelope)
  return {
    ...renderHead(envelope, { subject: words.headline, id: digest.id, at: digest.at }),
    text: renderText(words, footer),
    html: renderHtml(words, footer),
  }
}

const othersOf = ({ rest, note, checks }: DigestText) => [rest(checks.length), note].filter((text) => text !== null)

function renderText(words: DigestText, footer: string): string {
  const { headline, checks, link } = words
  const items = checks.map(({ name, change, reason, link }) => `${name}${change}\n  ${reason}.\n  ${link}`)
  const others = othersOf(words).map((text) => `${text}.`)
  return `${[headline, ...items, ...others, `All checks: ${link}`, `-- \n${footer}`].join('\n\n')}\n`
}

function renderHtml(words: DigestText, footer: string): string {
  const { headline, checks, link } = words
  const others = othersOf(words).map((text) => html`<p>${text}.</p>\n`)
  return String(html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${headline}</title></head>
<body style="font-family:sans-serif;line-height:1.4">
<h1 style="font-size:18px">${headline}</h1>
<ul style="padding-left:20px">
${checks.map(renderItem)}</ul>
${others}<p>All checks: <a href="${link}">${link}</a></p>
<p style="color:#666;font-size:12px">${footer}</p>
</body>
</html>
`)
}

function renderItem({ name, change, reason, link }: CheckLine) {
  return html`<li dir="auto" style="margin-bottom:8px"><a href="${link}">${name}</a>${change}<br>${reason}.</li>\n`
}
