/**
 * Apprise API, by `apprise_api/api/views.py` of github.com/caronc/apprise-api. `test/clients/apprise.test.ts` sends the same to the
 * library behind the same endpoints.
 */

import type { AppriseSettings } from '../../../src/channels/kinds/apprise/config.ts'
import { TEXT_LIMIT } from '../../../src/channels/kinds/apprise/message.ts'
import { demand, Refusal, startHttpService } from './service.ts'

/** What the server stores under the key `ops`: the tags of its services. */
export const STORED: Readonly<Record<string, readonly (readonly string[])[]>> = {
  ops: [['team', 'on-call'], ['chat'], []],
}
const KNOWN = /\b(json|xml|pover|mailto):\/\/[^\s,]+/
const NOT_SENT = 'One or more notification could not be sent'

/** `is_exclusive_match` in apprise/utils/logic.py: `a, b` is a or b, `a b` both; no tag matches the services without tags. */
function isMatch(tag: string | undefined, tags: readonly string[]): boolean {
  if (tag === undefined) return tags.length === 0
  return tag.split(/\s*[|,]\s*/).some((all) => all.split(/[\s&+]+/).every((one) => one === 'all' || tags.includes(one)))
}

/** By default of a channel with secrets. */
export const startApprise = (
  settingsAt: (url: string) => AppriseSettings = (url) => ({
    kind: 'apprise',
    url: url.replace('//', '//robot:s3cret@'),
    urls: 'json://user:s3cret@hooks.example.com/s3cret%21, pover://user@s3cret',
  }),
) =>
  startHttpService({
    settingsAt,
    accept({ method, path, headers, body }) {
      const [, key] = /^\/notify(?:\/([\w-]{1,128}))?\/?$/.exec(path) ?? [null, null]
      if (method !== 'POST' || key === null) throw new Refusal('no such path', { status: 404 })
      demand(headers['content-type'] === 'application/json', 'Bad FORM Payload provided')
      const { urls, tag, title, body: text, type, format, ...others } = JSON.parse(body)
      demand(Object.keys(others).length === 0, `unknown: ${Object.keys(others)}`)
      demand(tag === undefined || /^[a-z0-9\s| ,_:+&-]+$/i.test(tag), 'Unsupported characters found in tag definition')
      demand(typeof text === 'string' && text !== '', 'Payload lacks minimum requirements')
      demand(['info', 'success', 'warning', 'failure'].includes(type), 'Payload lacks minimum requirements')
      demand(['text', 'markdown', 'html'].includes(format), 'An invalid body input format was specified')
      const services = key === undefined ? (KNOWN.test(urls ?? '') ? [[]] : undefined) : STORED[key]
      if (services === undefined) throw new Refusal('nothing to notify', { status: 204 })
      if (!services.some((tags) => isMatch(key === undefined ? 'all' : tag, tags)))
        throw new Refusal('no match', { status: 424, text: NOT_SENT })
      // As Rocket.Chat behind it does.
      if (title.length + text.length > TEXT_LIMIT) throw new Refusal('too long', { status: 424, text: NOT_SENT })
      return { status: 200 }
    },
    tooMany: { status: 429, headers: { 'retry-after': '20' }, text: 'slow down, robot:s3cret' },
    tooManyMs: 20_000,
    // The key is not known any more, or none of the URLs.
    gone: { status: 204 },
    isGoneAtOnce: false,
  })
