import { z } from 'zod'
import { configOf, hideCredentials, hidePath, reveal, webUrl } from '../fields.ts'
import type { KindConfig } from '../kind.ts'
import { isSecret, makeSecret, rotateSecrets, type SigningSecret } from './signature.ts'

export interface WebhookSettings {
  readonly kind: 'webhook'
  readonly url: string
  /** The newest first. Each that has not expired signs. */
  readonly secrets: readonly SigningSecret[]
}

type WebhookConfig = Pick<WebhookSettings, 'url'>

export const webhookConfig: KindConfig<WebhookSettings, WebhookConfig, WebhookConfig> = {
  title: 'Webhook',
  purpose: 'JSON by POST, signed: for programs of your own, and for services that take webhooks.',
  form: [
    {
      name: 'url',
      label: 'URL',
      meaning:
        'Where events are sent by POST. Credentials in it are sent as an Authorization header. Later it is shown with … instead of credentials and query.',
      example: 'https://hooks.example.com/heartbeat',
      isSecret: true,
    },
  ],
  input: configOf({
    url: webUrl(
      'Where events are sent by POST. Credentials in it (https://user:password@host/) are sent as an Authorization header. Responses show … instead of credentials and query; a URL that is sent back as it was shown keeps its value.',
    ),
  }),
  shown: z.object({ url: z.string() }),

  toSettings({ url }, stored) {
    return {
      kind: 'webhook',
      url: reveal(url, stored === null ? [] : [stored.url], hideCredentials, 'url'),
      secrets: stored?.secrets ?? [{ secret: makeSecret(), expiresAt: null }],
    }
  },
  show: ({ url }) => ({ url: hideCredentials(url) }),
  // In many services the path of a webhook is its credential.
  showToReader: ({ url }) => ({ url: hidePath(url) }),
  urlsOf: ({ url }) => [{ url, field: 'url' }],
  inSecret: { field: 'url', orField: 'url' },
  secret: {
    form: 'whsec_ and 24 to 64 bytes in base64',
    isOfForm: isSecret,
    give: (settings, secret) => ({ ...settings, secrets: [{ secret, expiresAt: null }] }),
    newest: ({ secrets }) => secrets[0]!.secret,
    rotate: (settings, now) => ({ ...settings, secrets: rotateSecrets(settings.secrets, now) }),
    // The end of the previous secret, which each rotation sets anew.
    rotationOf: ({ secrets }) => String(secrets[1]?.expiresAt ?? 'none'),
  },
}
