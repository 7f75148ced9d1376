/** Who else says who a user is, by OpenID Connect: as the configuration has it. */

import type { Scope } from './access.ts'

interface Issuer {
  /** A URL that must be exactly the claim `iss`, and the issuer in the discovery document. */
  readonly issuer: string
  /** The e-mail address of a user for each value of the claim `sub`. */
  readonly users: ReadonlyMap<string, string>
}

/** An issuer whose tokens the management API accepts. */
export interface OidcIssuer extends Issuer {
  /** Must be among the claim `aud`. */
  readonly audience: string
  /** The issuer's public keys (RFC 7517); null: they are fetched from the issuer. */
  readonly jwks: { readonly keys: readonly object[] } | null
}

/** An identity provider with which users sign in to the dashboard. */
export interface SignInProvider extends Issuer {
  /** Shown on the provider's button, and part of the redirect URI. */
  readonly name: string
  readonly clientId: string
  readonly clientSecret: string
  /** The scope of users that their first sign-in creates; null: it creates none. */
  readonly newUserScope: Scope | null
}
