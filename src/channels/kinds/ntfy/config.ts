import { z } from 'zod'
import { rule } from '../../../domain/errors.ts'
import { configOf, webUrl } from '../fields.ts'
import type { KindConfig } from '../kind.ts'
import { bearerToken, hideServer, integer, ownServerField, revealServer, tokenField } from '../server-fields.ts'

interface NtfyConfig {
  readonly topic: string
  /** Absent: NTFY_URL. */
  readonly url?: string | undefined
  /** Absent: the topic is open to all, or `url` has a user and a password. */
  readonly token?: string | undefined
  /** Of a failure, 1 (lowest) to 5. Absent: 4. */
  readonly priority?: number | undefined
}
export type NtfySettings = NtfyConfig & { readonly kind: 'ntfy' }

export const NTFY_URL = 'https://ntfy.sh'

/** `topicRegex` in `server/server.go` of ntfy. */
const TOPIC = /^[-_A-Za-z0-9]{1,64}$/
const TOPIC_RULE = rule('must be 1 to 64 letters, digits, - and _')
/** With a path, ntfy would take the JSON for the text of a message to the topic of that name. */
const server = webUrl(`Your own ntfy server. Default: ${NTFY_URL}. Responses show … instead of credentials in it.`, {
  words: 'without ? and a path: the topic has a field of its own',
  holds: (url) => /^https?:\/\/[^/?]+\/?$/i.test(url),
  without: '?/',
})

export const ntfyConfig: KindConfig<NtfySettings, NtfyConfig, NtfyConfig> = {
  title: 'ntfy',
  purpose: 'A push notification on your phone or desktop, through ntfy.sh or your own ntfy server.',
  form: [
    {
      name: 'topic',
      label: 'Topic',
      meaning: 'Subscribe to it in the app. On ntfy.sh all who know its name can read it, unless it is reserved.',
      example: 'heartbeat-Kx83hPq2',
    },
    ownServerField('ntfy', NTFY_URL, 'https://ntfy.example.com'),
    {
      ...tokenField({
        label: 'Access token',
        meaning: 'For a topic that not all may write to.',
        example: 'tk_AgQdq7mVBoFD37zQVN29RhuMzNIz2',
      }),
      isOptional: true,
    },
    {
      name: 'priority',
      label: 'Priority of a failure',
      meaning: '1 (no sound) to 5 (rings long). Empty: 4. Other messages have at most 3, the usual one.',
      as: 'number',
      example: '5',
      isOptional: true,
    },
  ],
  input: configOf({
    topic: z.string(TOPIC_RULE).regex(TOPIC, TOPIC_RULE).meta({ description: 'The topic that people subscribe to.' }),
    url: server.optional(),
    token: bearerToken('An access token, for a topic that not all may write to').optional(),
    priority: integer(1, 5, 'Of a failure, 1 to 5. Default: 4. Other messages have at most 3.').optional(),
  }),
  shown: z.object({
    topic: z.string(),
    url: z.string().optional(),
    token: z.string().optional(),
    priority: z.int().optional(),
  }),

  toSettings: (config, stored) => ({ kind: 'ntfy', ...revealServer(config, stored) }),
  show: ({ kind: _, ...config }) => hideServer(config),
  urlsOf: ({ url = NTFY_URL }) => [{ url, field: 'url' }],
  inSecret: { field: 'token' },
}
