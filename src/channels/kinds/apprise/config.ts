import { z } from 'zod'
import { invalidField, rule } from '../../../domain/errors.ts'
import { configOf, hideAll, hideCredentials, reveal, secretText, webUrl } from '../fields.ts'
import type { KindConfig } from '../kind.ts'
import { hideServer } from '../server-fields.ts'

/** Either `key`, with or without `tag`, or `urls`. */
interface AppriseConfig {
  readonly url: string
  readonly key?: string | undefined
  readonly tag?: string | undefined
  readonly urls?: string | undefined
}
export type AppriseSettings = AppriseConfig & { readonly kind: 'apprise' }

/** `apprise_api/api/urls.py` of Apprise API, in ASCII. */
const KEY = /^[A-Za-z0-9_-]{1,128}$/
const KEY_RULE = 'must be 1 to 128 letters, digits, _ and -'
/** `TAG_VALIDATION_RE` in `apprise_api/api/views.py`. */
const TAG = /^[A-Za-z0-9][A-Za-z0-9 ,|_:+&-]{0,199}$/
const TAG_RULE = 'must be 1 to 200 letters, digits, spaces and , | _ : + & -, and begin with a letter or a digit'
/** Without what JSON escapes: so a response that repeats them is recognized. */
const URLS = /^[A-Za-z0-9]{1,32}:\/\/[ !#-[\]-~]{1,1000}$/
const URLS_RULE =
  'must be URLs of Apprise (service://...) with commas or spaces between them: ASCII without quotes and backslashes, at most 1000 characters after the first ://'

const optional = (pattern: RegExp, words: string, description: string) =>
  z.string(rule(words)).regex(pattern, rule(words)).optional().meta({ description })
const shown = z.string().optional()

export const appriseConfig: KindConfig<AppriseSettings, AppriseConfig, AppriseConfig> = {
  title: 'Apprise',
  purpose: 'A message through your Apprise API server, which reaches over a hundred other services.',
  form: [
    {
      name: 'url',
      label: 'Server',
      meaning: 'Your Apprise API server, without /notify. Later it is shown with … instead of credentials.',
      example: 'https://apprise.example.com',
      isSecret: true,
    },
    {
      name: 'key',
      label: 'Key',
      meaning: 'Of a configuration that the server stores. Empty: the services are below.',
      example: 'ops',
      isOptional: true,
    },
    {
      name: 'tag',
      label: 'Tags',
      meaning: 'Services of the key: "a, b" has a or b, "a b" has both, "all" is each. Empty: those without tags.',
      example: 'on-call',
      isOptional: true,
    },
    {
      name: 'urls',
      label: 'Services',
      meaning: 'Without a key: URLs of Apprise, with commas between them. A secret: later it is shown as ….',
      example: 'pover://user@token, signal://localhost/+15551234567',
      isSecret: true,
      isOptional: true,
    },
  ],
  input: configOf({
    url: webUrl('Your Apprise API server, without /notify. Responses show … instead of credentials in it.', {
      words: 'without ? and /notify at the end',
      without: '?',
      holds: (url) => !url.includes('?') && !/\/notify(\/[^/]*)?\/*$/.test(new URL(url).pathname),
    }),
    key: optional(KEY, KEY_RULE, 'Of a configuration that the server stores. Either `key` or `urls`.'),
    tag: optional(TAG, TAG_RULE, 'Services of the key: `a, b`, `a b` (both) or `all`. Default: those without tags.'),
    urls: secretText(URLS, URLS_RULE, 'Services, as URLs of Apprise. Either `key` or `urls`').optional(),
  }).meta({
    not: { type: 'object', required: ['key', 'urls'], properties: { key: {}, urls: {} } },
    dependentRequired: { tag: ['key'] },
  }),
  shown: z.object({ url: z.string(), key: shown, tag: shown, urls: shown }),

  toSettings({ url, key, tag, urls }, stored) {
    if ((key === undefined) === (urls === undefined))
      throw invalidField('config.key', 'must be given, or else urls: exactly one of the two')
    if (key === undefined && tag !== undefined) throw invalidField('config.tag', 'needs a key: urls have no tags')
    const server = reveal(url, stored === null ? [] : [stored.url], hideCredentials, 'url')
    // Hidden ones do not go to another server.
    const kept = stored?.url === server && stored.urls !== undefined ? [stored.urls] : []
    const services = urls === undefined ? { key, ...(tag && { tag }) } : { urls: reveal(urls, kept, hideAll, 'urls') }
    return { kind: 'apprise', url: server, ...services }
  },
  show: ({ kind: _, urls, ...others }) => ({ ...hideServer(others), ...(urls && { urls: hideAll(urls) }) }),
  urlsOf: ({ url }) => [{ url, field: 'url' }],
  inSecret: { field: 'urls', orField: 'key' },
}
