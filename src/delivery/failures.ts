/** Why a receiver was not reached, in words that follow its name. Used for HTTP and for SMTP. */

/** By the code of Node, its HTTP parser or OpenSSL; the first pattern that matches. `{setting}` stands for where the address is configured. */
const FAILURES: readonly (readonly [RegExp, string])[] = [
  [/^ECONNREFUSED$/, 'refused the connection: check that it is running, and the port in {setting}'],
  [/^(ECONNRESET|ECONNABORTED|EPIPE)$/, 'closed the connection before it responded'],
  [/^ETIMEDOUT$/, 'did not accept a connection in time: a firewall may drop it'],
  [/^(EHOSTUNREACH|ENETUNREACH)$/, 'is unreachable: there is no route to its network'],
  [/^ENOTFOUND$/, 'has no address: check the host name in {setting}'],
  [/^(EAI_|EDNS$)/, 'could not be resolved: the name servers did not respond'],
  [/^CERT_HAS_EXPIRED$/, 'presents an expired certificate'],
  [/^CERT_NOT_YET_VALID$/, 'presents a certificate that is not valid yet: check both clocks'],
  [/^CERT_REVOKED$/, 'presents a revoked certificate'],
  [/^ERR_TLS_CERT_ALTNAME_INVALID$/, 'presents a certificate for another name: check the host name in {setting}'],
  [
    /^(UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|CERT_UNTRUSTED)/,
    'presents a certificate that no known authority has signed: NODE_EXTRA_CA_CERTS adds an authority',
  ],
  [/^(CERT_|CRL_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_|HOSTNAME_|ERROR_IN_)/, 'presents an invalid certificate'],
  [/^(EPROTO$|ERR_SSL_|ERR_TLS_)/, 'does not speak TLS as expected: check the scheme and the port in {setting}'],
  [/^HPE_HEADER_OVERFLOW$/, 'responded with too many headers'],
  [/^HPE_/, 'sent a response that is not HTTP'],
]

/** A predicate to the receiver's name, with the code in brackets; null for an unknown code. */
export function explainFailure(code: string, setting: string): string | null {
  const text = FAILURES.find(([pattern]) => pattern.test(code))?.[1]
  return text === undefined ? null : `${text.replace('{setting}', setting)} (${code})`
}

/** What a receiver said, on one line of at most 200 characters; `…` instead of what is cut off. */
export function toQuote(text: string): string {
  const characters = [...text]
  return characters.length <= QUOTED_CHARACTERS ? text : `${characters.slice(0, QUOTED_CHARACTERS - 1).join('')}…`
}

const QUOTED_CHARACTERS = 200

/** White space and invisible characters as single spaces. */
export function joinLines(text: string): string {
  return text.replace(/[\p{C}\p{Z}]+/gu, ' ').trim()
}
