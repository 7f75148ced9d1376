/** A channel of a kind, with its real sender, at a fake of its service (test/support/receivers). */

import { beforeEach } from 'vitest'
import { createSenders } from '../../../src/channels/kinds/index.ts'
import { createLinks } from '../../../src/channels/kinds/kind.ts'
import { createHttpClient, type HttpClientOptions } from '../../../src/delivery/http.ts'
import type { OutboxOptions } from '../../../src/delivery/outbox.ts'
import type { ChannelKind } from '../../../src/domain/channel.ts'
import { SERVICES } from '../../support/receivers/index.ts'
import type { Service } from '../../support/receivers/service.ts'
import { createReceiver, type Fixture } from './fixture.ts'

interface Options {
  readonly client?: Partial<HttpClientOptions>
  /** Default: of the fake. */
  readonly smtpUrl?: string
  /** A certificate authority in PEM, for both protocols. */
  readonly ca?: string
  readonly outbox?: Partial<OutboxOptions>
}

/** Before each test of the `describe` that it is called in: a new channel, and its service is well. */
export function useKind(kind: ChannelKind, fixture: () => Fixture, stack: AsyncDisposableStack) {
  let service: Service & { readonly smtpPort?: number }
  let channelId: string
  let outbox: ReturnType<typeof createOutbox>
  beforeEach(async () => {
    service = stack.use(await SERVICES[kind]())
    channelId = await fixture().addChannel({ settings: service.settings })
    outbox = createOutbox()
  })

  function createOutbox({ client = {}, smtpUrl, ca, outbox = {} }: Options = {}) {
    const trusting = ca === undefined ? {} : { ca }
    const senders = createSenders({
      client: stack.adopt(createHttpClient({ allowedTargets: ['127.0.0.0/8'], ...trusting, ...client }), (opened) =>
        opened.close(),
      ),
      clock: fixture().clock,
      links: createLinks(
        () => 'https://heartbeat.example.com/api/v1',
        true,
        ({ checkId, since }) => `${checkId}.${since}`,
      ),
      database: fixture().database,
      smtp: {
        url: smtpUrl ?? (service.smtpPort === undefined ? undefined : `smtp://127.0.0.1:${service.smtpPort}`),
        from: 'heartbeat@example.com',
        ...trusting,
      },
    })
    for (const sender of Object.values(senders)) stack.defer(() => sender.close?.())
    return { ...fixture().createOutbox(createReceiver().send, { senders, ...outbox }), senders }
  }

  return {
    service: () => service,
    channelId: () => channelId,
    /** The one that most tests need. */
    outbox: () => outbox,
    createOutbox,
    /** `sending`: another outbox. */
    async later(ms: number, sending: Pick<typeof outbox, 'drain'> = outbox) {
      await fixture().clock.advance(ms)
      await sending.drain()
    },
  }
}
