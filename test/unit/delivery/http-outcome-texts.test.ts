/** What people read about a delivery: the receiver's words and the failure's, and never a part of the URL but its host. */

import { describe, expect, it } from 'vitest'
import type { HttpAnswer, HttpClient } from '../../../src/delivery/http.ts'
import { sendForOutcome } from '../../../src/delivery/http-outcome.ts'
import { systemClock } from '../../../src/runtime/clock.ts'

const SECRETS = ['services', 'T0SECRET', 'K3Y', 'mary', 'p@ss', 'p%40ss', btoa('mary:p@ss')]
const URL_WITH_SECRETS = 'https://mary:p%40ss@hooks.test/services/T0SECRET?key=K3Y'

/** The text about an answer or a failure that a client gives. */
async function tell(given: Partial<HttpAnswer> | Error, url = URL_WITH_SECRETS): Promise<string> {
  const client: HttpClient = {
    send: async () => {
      if (given instanceof Error) throw given
      return { status: 400, headers: {}, text: '', ...given }
    },
    close: async () => {},
  }
  const request = { method: 'POST', url, isTrusted: false } as const
  const outcome = await sendForOutcome(client, request, AbortSignal.timeout(1_000), systemClock)
  if (outcome.kind === 'delivered') throw new Error('delivered')
  expect(outcome.kind).toBe(given instanceof Error ? 'retry' : 'refused')
  for (const secret of SECRETS) expect(outcome.error).not.toContain(secret)
  return outcome.error
}

describe('what the receiver says', () => {
  const quote = async (text: string, headers: Record<string, string> = {}) =>
    (await tell({ text, headers })).replace(/^hooks\.test answered 400(: )?/, '')

  it('is quoted on one line, without control characters', async () => {
    expect(await quote('{"error":\n\t"no\u0000pe\u001b[31m\u202e!\u2028"}\r\n')).toBe('{"error": "no pe [31m ! "}')
  })

  it('is cut to 200 characters, none of them split', async () => {
    const said = await quote('😀'.repeat(300))
    expect([...said]).toHaveLength(200)
    expect(said).toMatch(/^😀+…$/u)
    expect(await quote('x'.repeat(200))).toBe('x'.repeat(200))
  })

  it('is left out when there is nothing, or a page for browsers', async () => {
    expect(await quote('')).toBe('')
    expect(await quote(' \n')).toBe('')
    expect(await quote('<!DOCTYPE html><title>Not Found</title>')).toBe('')
    expect(await quote('Cannot POST', { 'content-type': 'text/html; charset=utf-8' })).toBe('')
  })

  it.each([
    ['Cannot POST /services/T0SECRET?key=K3Y', 'Cannot POST …'],
    ['no route for /services/T0SECRET', 'no route for …'],
    ['{"path":"\\/services\\/T0SECRET"}', '{"path":"\\/…\\/…"}'],
    ['unknown hook T0SECRET', 'unknown hook …'],
    ['wrong key=K3Y', 'wrong …'],
    ['who is mary?', 'who is …?'],
    ['not p@ss, nor p%40ss', 'not …, nor …'],
    [`Authorization: Basic ${btoa('mary:p@ss')}`, 'Authorization: Basic …'],
  ])('shows nothing of the URL: %s', async (text, shown) => {
    expect(await quote(text)).toBe(shown)
  })

  it('keeps its words when the URL has no path', async () => {
    expect(await tell({ text: 'a/b: no' }, 'https://hooks.test')).toBe('hooks.test answered 400: a/b: no')
  })
})

describe('failures that a test cannot make', () => {
  it.each([
    ['CERT_HAS_EXPIRED', 'hooks.test shows a certificate that has expired (CERT_HAS_EXPIRED)'],
    ['CERT_NOT_YET_VALID', /certificate that is not valid yet/],
    ['DEPTH_ZERO_SELF_SIGNED_CERT', /no known authority vouches for: NODE_EXTRA_CA_CERTS adds/],
    ['SELF_SIGNED_CERT_IN_CHAIN', /NODE_EXTRA_CA_CERTS/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', /NODE_EXTRA_CA_CERTS/],
    ['CERT_REVOKED', /certificate that was revoked/],
    ['CERT_CHAIN_TOO_LONG', /certificate that does not hold/],
    ['HPE_INVALID_CONSTANT', /gave an answer that is not HTTP/],
    ['ETIMEDOUT', /did not accept a connection in time/],
    ['UND_ERR_CONNECT_TIMEOUT', /did not accept a connection in time/],
    ['EHOSTUNREACH', /cannot be reached from here/],
    ['ENETUNREACH', /cannot be reached from here/],
    ['EPIPE', /broke the connection off/],
    ['ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION', /does not speak TLS as expected/],
    ['EMFILE', 'hooks.test could not be asked (EMFILE)'],
  ])('%s is tried again', async (code, text) => {
    expect(await tell(Object.assign(new Error(URL_WITH_SECRETS), { code }))).toMatch(text)
  })

  it('an error without a code is told by its name alone', async () => {
    expect(await tell(new TypeError(URL_WITH_SECRETS))).toBe('hooks.test could not be asked (TypeError)')
  })
})
