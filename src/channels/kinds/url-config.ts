/**
 * The config of a kind that is reached by one URL, which is its secret as a whole: Slack's incoming webhook and the
 * like.
 */

import { z } from 'zod'
import type { ChannelKind } from '../../domain/channel.ts'
import { configOf, hidePath, reveal, webUrl } from './fields.ts'
import type { ConfigField, KindConfig } from './kind.ts'

export interface UrlSettings<Kind extends ChannelKind = ChannelKind> {
  readonly kind: Kind
  readonly url: string
}

type UrlConfig = Pick<UrlSettings, 'url'>

/**
 * `description`: what the URL is, for the document of the API; without a full stop. `extra`: a further condition of the
 * URL.
 */
export function urlConfig<Kind extends ChannelKind>(
  kind: Kind,
  texts: Pick<KindConfig<UrlSettings<Kind>, UrlConfig, UrlConfig>, 'title' | 'purpose'> &
    Pick<ConfigField, 'label' | 'meaning' | 'example'> & {
      readonly description: string
      readonly extra?: Parameters<typeof webUrl>[1]
    },
): KindConfig<UrlSettings<Kind>, UrlConfig, UrlConfig> {
  const { title, purpose, label, meaning, example, description, extra } = texts
  const secrecy = 'It is a secret: later only its host is shown.'
  return {
    title,
    purpose,
    form: [{ name: 'url', label, meaning: `${meaning} ${secrecy}`, example, isSecret: true }],
    input: configOf({
      url: webUrl(
        `${description}. It is a secret: responses show its origin and …, and a URL that is sent back as it was shown keeps its value.`,
        extra,
      ),
    }),
    shown: z.object({ url: z.string() }),

    toSettings: ({ url }, stored) => ({
      kind,
      url: reveal(url, stored === null ? [] : [stored.url], hidePath, 'url'),
    }),
    show: ({ url }) => ({ url: hidePath(url) }),
    urlsOf: ({ url }) => [{ url, field: 'url' }],
    inSecret: { field: 'url' },
  }
}
