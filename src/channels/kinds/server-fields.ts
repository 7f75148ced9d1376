/** What the configs of kinds with a server and a token have in common. */

import { z } from 'zod'
import { rule } from '../../domain/errors.ts'
import { hideAll, hideCredentials, reveal, secretText, webUrl } from './fields.ts'
import type { ConfigField } from './kind.ts'

/** In a form, the server of a person's own. `name`: of the server. `standard`: the URL without one. */
export const ownServerField = (name: string, standard: string, example: string): ConfigField => ({
  name: 'url',
  label: 'Server',
  meaning: `Your own ${name} server. Empty: ${standard}. Later it is shown with … instead of credentials.`,
  example,
  isSecret: true,
  isOptional: true,
})

/** In a form, the token. `meaning`: what it is, with a full stop. */
export const tokenField = (field: Pick<ConfigField, 'label' | 'meaning' | 'example'>): ConfigField => ({
  name: 'token',
  ...field,
  meaning: `${field.meaning} It is a secret: later it is shown as ….`,
  isSecret: true,
})

/** The address of a server: its API is below it. `description`: without a full stop. */
export const serverUrl = (description: string) =>
  webUrl(`${description}. Responses show … instead of credentials in it.`, {
    words: 'without ?',
    holds: (url) => !url.includes('?'),
    without: '?',
  })

/** `path` begins with a slash. */
export const below = (url: string, path: string): string => url.replace(/\/+$/, '') + path

/** A token of a header (RFC 6750, section 2.1). */
export const bearerToken = (description: string) =>
  secretText(
    /^[A-Za-z0-9._~+/-]{1,1000}={0,2}$/,
    'must be an access token of at most 1000 letters, digits and -, ., _, ~, +, /',
    description,
  )

export function integer(min: number, max: number, description: string) {
  const says = rule(`must be an integer from ${min} to ${max}`)
  return z.int(says).min(min, says).max(max, says).meta({ description })
}

interface Server {
  readonly url?: string | undefined
  readonly token?: string | undefined
}

/** With `…` for the token and for the credentials of the URL. */
export function hideServer<Fields extends Server>(fields: Fields): Fields {
  const { url, token } = fields
  return {
    ...fields,
    ...(url === undefined ? {} : { url: hideCredentials(url) }),
    ...(token === undefined ? {} : { token: hideAll(token) }),
  }
}

/**
 * The URL and the token that `given` stands for. A hidden token is kept at its own server only, so that no one can lead
 * the token to another server. Throws as `reveal`. `field`: that of the URL in `config`.
 */
export function revealServer<Fields extends Server>(given: Fields, stored: Server | null, field = 'url'): Fields {
  const keep = (value: string | undefined) => (value === undefined ? [] : [value])
  const [url] = keep(given.url).map((shown) => reveal(shown, keep(stored?.url), hideCredentials, field))
  const kept = stored?.url === url ? keep(stored?.token) : []
  const [token] = keep(given.token).map((shown) => reveal(shown, kept, hideAll, 'token'))
  return { ...given, ...(url === undefined ? {} : { url }), ...(token === undefined ? {} : { token }) }
}
